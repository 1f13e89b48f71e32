"""Class frequencies that a diversity term aims at: uniform, given, or estimated for the target."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.types import Source, Target

_STRENGTH = 1 / 3
"""Strength of the term that keeps the ratios near 1; chosen on drawn streets (decision 11)."""
_FARTHEST = 10.0
"""Largest factor by which a class may be more frequent, or rarer, than in the source."""


@full_precision
def frequency_ratios(joint: Tensor, predicted: Tensor, strength: float = _STRENGTH) -> Tensor:
    """Estimated frequency of each class in the target relative to the source: w, shape (K,).

    It minimises ‖J w - μ‖² + λ² ‖w - 1‖², with λ the given share of a bound of ‖J‖, and is clipped to 1/10..10.

    Args:
        joint: J, mean probability of each prediction (row) and label (column) in the source, shape (K, K), sum 1.
        predicted: μ, mean prediction of the target, shape (K,).
        strength: λ as a share of the root of the largest row sum times the largest column sum.

    Examples:
        >>> frequency_ratios(torch.eye(2) / 2, torch.tensor([0.5, 0.5]))  # the target has the source's frequencies
        tensor([1., 1.])
    """
    squared = strength**2 * joint.sum(0).max() * joint.sum(1).max()
    system = joint.T @ joint + squared * torch.eye(len(joint), dtype=joint.dtype, device=joint.device)
    change: Tensor
    change, _ = torch.linalg.solve_ex(system, joint.T @ (predicted - joint.sum(1)))  # NaN in, NaN out
    return (1 + change).clamp(1 / _FARTHEST, _FARTHEST)


class LabelShift(nn.Module):
    """Frequency ratios over many batches: both distributions are running means over the batches of the training.

    Args:
        classes: Number of classes K.
        momentum: Share of the past, in 0..1.
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
        """Update the running means with a batch: source logits (n, K), source labels (n,) and target logits (m, K)."""
        known, found = (logits.to(self.joint).softmax(1) for logits in (source, target))
        joint = torch.zeros_like(self.joint).index_add_(1, labels, known.T) / len(labels)
        self.joint.lerp_(joint, 1 - self.momentum)
        self.predicted.lerp_(found.mean(0), 1 - self.momentum)
        total = self.joint.sum()  # both started at zero and are a share of a distribution
        self.log_ratios.copy_(frequency_ratios(self.joint / total, self.predicted / total).log())

    def forward(self, log_prior: Tensor) -> Tensor:
        """Return the prior of the source, log π (K,), moved to the target."""
        return torch.log_softmax(log_prior + self.log_ratios.to(log_prior), 0)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"momentum={self.momentum}"


class ClassPrior(nn.Module):
    """The prior π of `missing_information`.

    Args:
        classes: Number of classes K.
        given: K numbers above 0; None: the classes should be equally frequent.
        shift: The given frequencies are those of the source and are moved to the target by `LabelShift`.
    """

    _given: Tensor | None

    def __init__(self, classes: int, given: Sequence[float] | None, *, shift: bool = False) -> None:
        super().__init__()
        self.register_buffer("_given", _log_prior(given, classes, shift), persistent=False)
        self.shift = LabelShift(classes) if shift else None

    @property
    def log(self) -> Tensor | None:
        """Logarithm of the prior, shape (K,); None where the classes should be equally frequent."""
        if self._given is None or self.shift is None:
            return self._given
        moved: Tensor = self.shift(self._given)
        return moved

    def learn(self, source: Source, target: Target) -> None:
        """Update the estimate with a training batch, where the prior depends on it."""
        if self.shift is not None:
            self.shift.learn(source.logits.detach(), source.labels, target.logits.detach())


def _log_prior(given: Sequence[float] | None, classes: int, shift: bool) -> Tensor | None:
    if given is None:
        return torch.full((classes,), 1 / classes).log() if shift else None
    found = torch.as_tensor(given, dtype=torch.float32)
    if found.shape != (classes,) or not bool((found > 0).all()):
        raise ValueError(f"prior must be {classes} numbers above 0")
    return (found / found.sum()).log()
