"""Class frequencies that a diversity term asks for: uniform, given, or estimated for the target."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from paretoda.types import Source, Target

_STRENGTH = 1 / 3
"""Of what holds the ratios near 1; chosen on drawn streets, decision 11."""
_FARTHEST = 10.0
"""No class is taken to be more than so many times as frequent, or as rare."""


def frequency_ratios(joint: Tensor, predicted: Tensor, strength: float = _STRENGTH) -> Tensor:
    """How many times as frequent as in the source each class is in the target, w, shape (K,).

    It minimises ‖J w - μ‖² + λ² ‖w - 1‖², with λ the given share of a bound of ‖J‖, and is cut to 1/10..10.

    Args:
        joint: J, mean probability of each prediction (row) and label (column) in the source, shape (K, K), sum 1.
        predicted: μ, the target's mean prediction, shape (K,).
        strength: λ as a share of the root of the largest row sum times the largest column sum.
    """
    squared = strength**2 * joint.sum(0).max() * joint.sum(1).max()
    system = joint.T @ joint + squared * torch.eye(len(joint), dtype=joint.dtype, device=joint.device)
    change: Tensor
    change, _ = torch.linalg.solve_ex(system, joint.T @ (predicted - joint.sum(1)))  # NaN in, NaN out
    return (1 + change).clamp(1 / _FARTHEST, _FARTHEST)


class LabelShift(nn.Module):
    """The ratios over many batches: both distributions are running means over what the training sees anyway.

    Args:
        classes: number of classes K.
        momentum: share of the past, in 0..1.
    """

    joint: Tensor
    predicted: Tensor
    log_ratios: Tensor

    def __init__(self, classes: int, momentum: float = 0.95) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("joint", torch.zeros(classes, classes))
        self.register_buffer("predicted", torch.zeros(classes))
        self.register_buffer("log_ratios", torch.zeros(classes))

    @torch.no_grad()
    def learn(self, source: Tensor, labels: Tensor, target: Tensor) -> None:
        """Remember a batch: logits (n, K) of the source, its labels (n,), and the target's logits (m, K)."""
        told, found = (logits.to(self.joint).softmax(1) for logits in (source, target))
        joint = torch.zeros_like(self.joint).index_add_(1, labels, told.T) / len(labels)
        self.joint.lerp_(joint, 1 - self.momentum)
        self.predicted.lerp_(found.mean(0), 1 - self.momentum)
        total = self.joint.sum()  # both began as zeros, and are a share of a distribution
        self.log_ratios.copy_(frequency_ratios(self.joint / total, self.predicted / total).log())

    def forward(self, log_prior: Tensor) -> Tensor:
        """A prior of the source, log π (K,), moved to the target."""
        return torch.log_softmax(log_prior + self.log_ratios.to(log_prior), 0)

    def extra_repr(self) -> str:
        """Settings."""
        return f"momentum={self.momentum}"


class ClassPrior(nn.Module):
    """The prior π of `missing_information`.

    Args:
        classes: number of classes K.
        given: K numbers above 0; None: the classes should be equally frequent.
        shift: the given ones are the source's, and are moved to the target by what `LabelShift` finds in the training.
    """

    _given: Tensor | None

    def __init__(self, classes: int, given: Sequence[float] | None, *, shift: bool = False) -> None:
        super().__init__()
        self.register_buffer("_given", _checked(given, classes, shift), persistent=False)
        self.shift = LabelShift(classes) if shift else None

    @property
    def log(self) -> Tensor | None:
        """The logarithm, shape (K,); None where the classes should be equally frequent."""
        if self._given is None or self.shift is None:
            return self._given
        moved: Tensor = self.shift(self._given)
        return moved

    def learn(self, source: Source, target: Target) -> None:
        """Look at a batch of the training, where the prior depends on it."""
        if self.shift is not None:
            self.shift.learn(source.logits.detach(), source.labels, target.logits.detach())


def _checked(given: Sequence[float] | None, classes: int, shift: bool) -> Tensor | None:
    if given is None:
        return torch.full((classes,), 1 / classes).log() if shift else None
    found = torch.as_tensor(given, dtype=torch.float32)
    if found.shape != (classes,) or not bool((found > 0).all()):
        raise ValueError(f"prior must be {classes} numbers above 0")
    return (found / found.sum()).log()
