"""Information maximisation: target predictions become certain one by one, diverse together (Liang et al., 2020).

-MI lies between -log min(N, K) and 0: N samples cannot tell apart more than N things. Shifted by that bound it is 0
when every prediction is certain and all classes are equally frequent, and a loss in the sense of the schemes.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.domains import Objective, Source, Target
from paretoda.objectives.target.entropy import entropies


def information(log_probabilities: Tensor) -> Tensor:
    """The mutual information of sample and label: entropy of the mean prediction minus mean entropy.

    Args:
        log_probabilities: log p, shape (n, K).
    """
    marginal = log_probabilities.logsumexp(0, keepdim=True) - math.log(len(log_probabilities))
    return entropies(marginal).squeeze(0) - entropies(log_probabilities).mean()


def missing_information(log_probabilities: Tensor) -> Tensor:
    """How much the mutual information lacks of its largest value, log min(n, K); never negative.

    Args:
        log_probabilities: log p, shape (n, K).
    """
    return math.log(min(log_probabilities.shape)) - information(log_probabilities)


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

    def forward(self, log_probabilities: Tensor) -> Tensor:
        """The information of log p (n, K), with the past's share in the marginal; at most log K."""
        own = log_probabilities.exp().mean(0)
        value = self._mixed(own.detach()).clamp(min=torch.finfo(own.dtype).tiny)
        marginal = value + (own - own.detach())
        return -(marginal * marginal.log()).sum() - entropies(log_probabilities).mean()

    @torch.no_grad()
    def learn(self, log_probabilities: Tensor) -> None:
        """Remember the mean of log p (n, K)."""
        self.probabilities.copy_(self._mixed(log_probabilities.exp().mean(0)))

    def extra_repr(self) -> str:
        """Settings."""
        return f"momentum={self.momentum}"

    def _mixed(self, own: Tensor) -> Tensor:
        return self.momentum * self.probabilities.to(own) + (1 - self.momentum) * own


class Information(Objective):
    """The information that the target's predictions lack.

    Args:
        features: width of the features; not used.
        classes: number of classes K.
        momentum: of a running mean prediction, in 0..1; with 0 it is the batch's own.
    """

    def __init__(self, features: int, classes: int, *, momentum: float = 0.0) -> None:
        super().__init__()
        self.features, self.classes = features, classes
        self.marginal = RunningMarginal(classes, momentum) if momentum else None

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The missing information; of log K with a running mean."""
        log_p = functional.log_softmax(target.logits, 1)
        return missing_information(log_p) if self.marginal is None else math.log(self.classes) - self.marginal(log_p)

    def private_loss(self, source: Source, target: Target) -> None:  # noqa: ARG002
        """Nothing is lowered; in training the running mean is remembered here, as no forward changes the state."""
        if self.marginal is not None and self.training:
            self.marginal.learn(functional.log_softmax(target.logits, 1))
