"""Information maximisation: target predictions become certain one by one, diverse together (Liang et al., 2020).

-MI lies between -log min(N, K) and 0: N samples cannot tell apart more than N things. Shifted by that bound it is 0
when every prediction is certain and all classes are equally frequent, and a loss in the sense of the schemes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.class_prior import ClassPrior
from paretoda.objectives.target.entropy import entropies
from paretoda.types import Objective, Source, Target


def information(log_probabilities: Tensor) -> Tensor:
    """The mutual information of sample and label: entropy of the mean prediction minus mean entropy.

    Args:
        log_probabilities: log p, shape (n, K).
    """
    marginal = log_probabilities.logsumexp(0, keepdim=True) - math.log(len(log_probabilities))
    return entropies(marginal).squeeze(0) - entropies(log_probabilities).mean()


def missing_information(log_probabilities: Tensor, log_prior: Tensor | None = None) -> Tensor:
    """How much the mutual information lacks of its largest value, log min(n, K); never negative.

    With a prior π the classes need not be equally frequent: mean entropy + KL(mean prediction, π), 0 when every
    prediction is certain and the classes are as frequent as π says. A uniform π gives log K minus the information.

    Args:
        log_probabilities: log p, shape (n, K).
        log_prior: log π, shape (K,); None: the classes should be equally frequent.
    """
    if log_prior is None:
        return math.log(min(log_probabilities.shape)) - information(log_probabilities)
    marginal = log_probabilities.logsumexp(0) - math.log(len(log_probabilities))
    return (marginal.exp() * (marginal - log_prior)).sum() + entropies(log_probabilities).mean()


class RunningMarginal(nn.Module):
    """The mean prediction over many batches, where one batch says little about it: a few images, small batches.

    Nothing is known at first: it begins uniform, and then has no say. Its value counts; the gradient is that of the
    batch's own mean.

    Args:
        classes: number of classes K.
        momentum: share of the past, in 0..1.
    """

    probabilities: Tensor

    def __init__(self, classes: int, momentum: float) -> None:
        super().__init__()
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must lie in 0..1, got {momentum}")
        self.momentum = momentum
        self.register_buffer("probabilities", torch.full((classes,), 1 / classes))

    def forward(self, log_probabilities: Tensor, log_prior: Tensor) -> Tensor:
        """The missing information of log p (n, K) by log π (K,), with the past's share in the marginal."""
        own = log_probabilities.exp().mean(0)
        value = self._mixed(own.detach()).clamp(min=torch.finfo(own.dtype).tiny)
        marginal = value + (own - own.detach())
        return (marginal * (marginal.log() - log_prior)).sum() + entropies(log_probabilities).mean()

    @torch.no_grad()
    def learn(self, log_probabilities: Tensor) -> None:
        """Remember the mean of log p (n, K)."""
        self.probabilities.copy_(self._mixed(log_probabilities.exp().mean(0)))

    def extra_repr(self) -> str:
        """Settings."""
        return f"momentum={self.momentum}"

    def _mixed(self, own: Tensor) -> Tensor:
        return self.momentum * self.probabilities.to(own) + (1 - self.momentum) * own


def missing(log_probabilities: Tensor, log_prior: Tensor | None, marginal: RunningMarginal | None) -> Tensor:
    """The missing information by a prior and a running mean, where there are such.

    Args:
        log_probabilities: log p, shape (n, K).
        log_prior: shape (K,), or None.
        marginal: or None.
    """
    if marginal is None:
        return missing_information(log_probabilities, log_prior)
    classes = log_probabilities.shape[1]
    uniform = log_probabilities.new_full((classes,), -math.log(classes))
    found: Tensor = marginal(log_probabilities, uniform if log_prior is None else log_prior)
    return found


class Information(Objective):
    """The information that the target's predictions lack.

    Args:
        features: width of the features; not used.
        classes: number of classes K.
        momentum: of a running mean prediction, in 0..1; with 0 it is the batch's own.
        prior: how frequent the classes should be, K numbers; None: equally.
        shift: the prior is the source's, and moves to the target as `ClassPrior` says.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        momentum: float = 0.0,
        prior: Sequence[float] | None = None,
        shift: bool = False,
    ) -> None:
        super().__init__()
        self.features, self.classes = features, classes
        self.marginal = RunningMarginal(classes, momentum) if momentum else None
        self.prior = ClassPrior(classes, prior, shift=shift)

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The missing information; of log K with a running mean."""
        return missing(functional.log_softmax(target.logits, 1), self.prior.log, self.marginal)

    def private_loss(self, source: Source, target: Target) -> None:
        """Nothing is lowered; in training running means are remembered here, as no forward changes the state."""
        if not self.training:
            return
        self.prior.learn(source, target)
        if self.marginal is not None:
            self.marginal.learn(functional.log_softmax(target.logits, 1))
