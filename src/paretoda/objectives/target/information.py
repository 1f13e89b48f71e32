"""Entropy (Grandvalet and Bengio, 2004) and information maximisation (Liang et al., 2020) of target predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.class_prior import ClassPrior
from paretoda.objectives.parts.weights import weighted_mean
from paretoda.types import Objective, Source, Target


def entropies(log_probabilities: Tensor) -> Tensor:
    """-Σ_k p_k log p_k of every row, between 0 and log K.

    Args:
        log_probabilities: log p, shape (n, K); probabilities may underflow to 0, but their logarithms must be finite.

    Returns:
        Shape (n,).

    Examples:
        >>> import torch
        >>> entropies(torch.zeros(1, 2).log_softmax(1))  # log 2
        tensor([0.6931])
    """
    return -(log_probabilities.exp() * log_probabilities).sum(1)


class Entropy(Objective):
    """Mean entropy of the target's predictions. It does not prevent the prediction of one class for all samples.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).

    Examples:
        >>> import torch
        >>> source = Source(torch.zeros(2, 2), torch.zeros(2, 2), torch.arange(2), labels=torch.arange(2))
        >>> target = Target(torch.zeros(3, 2), torch.zeros(3, 2), torch.arange(3))
        >>> round(Entropy(features=2, classes=2)(source, target).item(), 4)
        0.6931
    """

    label_sets = ("closed", "partial", "open")

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.features, self.classes = features, classes

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the mean entropy."""
        return weighted_mean(entropies(functional.log_softmax(target.logits, 1)), target.weights)


def information(log_probabilities: Tensor) -> Tensor:
    """Mutual information of sample and label: entropy of the mean prediction minus mean entropy.

    Args:
        log_probabilities: log p, shape (n, K).

    Examples:
        >>> round(information((100 * torch.eye(2)).log_softmax(1)).item(), 4)  # certain and balanced: log 2
        0.6931
    """
    marginal = log_probabilities.logsumexp(0, keepdim=True) - math.log(len(log_probabilities))
    return entropies(marginal).squeeze(0) - entropies(log_probabilities).mean()


def missing_information(
    log_probabilities: Tensor, log_prior: Tensor | None = None, running: RunningMarginal | WholeMarginal | None = None
) -> Tensor:
    """Difference between the largest mutual information, log min(n, K), and the actual one; never negative.

    With a prior π the classes need not be equally frequent: mean entropy + KL(mean prediction, π), which is 0 when
    every prediction is certain and the classes have the frequencies π. A uniform π gives log K minus the information.

    Args:
        log_probabilities: log p, shape (n, K).
        log_prior: log π, shape (K,); None: the classes should be equally frequent.
        running: Mean prediction over more samples that replaces the mean of these samples; None: their own mean.

    Examples:
        >>> round(missing_information((100 * torch.eye(2)).log_softmax(1)).item(), 4)
        0.0
    """
    if running is not None:
        if log_prior is None:
            classes = log_probabilities.shape[1]
            log_prior = log_probabilities.new_full((classes,), -math.log(classes))
        found: Tensor = running(log_probabilities, log_prior)
        return found
    if log_prior is None:
        return math.log(min(log_probabilities.shape)) - information(log_probabilities)
    marginal = log_probabilities.logsumexp(0) - math.log(len(log_probabilities))
    return (marginal.exp() * (marginal - log_prior)).sum() + entropies(log_probabilities).mean()


class RunningMarginal(nn.Module):
    """Mean prediction over many batches, for batches that are too small to estimate it: a few images, small batches.

    It starts uniform, so that it has no effect at first. Its value is used; the gradient is that of the batch's own
    mean.

    Args:
        classes: Number of classes K.
        momentum: Share of the past, in 0..1.

    Raises:
        ValueError: The momentum does not lie in 0..1.
    """

    probabilities: Tensor

    def __init__(self, classes: int, momentum: float) -> None:
        super().__init__()
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must lie in 0..1, got {momentum}")
        self.momentum = momentum
        self.register_buffer("probabilities", torch.full((classes,), 1 / classes))

    def forward(self, log_probabilities: Tensor, log_prior: Tensor) -> Tensor:
        """Return the missing information of log p (n, K) under log π (K,), with the running mean in the marginal."""
        value = self._mixed(log_probabilities.detach().exp().mean(0))
        return _missing_given_marginal(log_probabilities, log_prior, value)

    @torch.no_grad()
    def learn(self, log_probabilities: Tensor) -> None:
        """Update the running mean with the mean of log p (n, K)."""
        self.probabilities.copy_(self._mixed(log_probabilities.exp().mean(0)))

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"momentum={self.momentum}"

    def _mixed(self, own: Tensor) -> Tensor:
        return self.momentum * self.probabilities.to(own) + (1 - self.momentum) * own


class WholeMarginal(nn.Module):
    """Mean prediction over the whole target at the last refresh, as the paper defines it.

    It is uniform before the first refresh. Its value is used; the gradient is that of the batch's own mean.

    Args:
        classes: Number of classes K.

    Examples:
        >>> marginal = WholeMarginal(classes=2)
        >>> marginal.replace(torch.tensor([[0.75, 0.25]]).log())
        >>> marginal.probabilities
        tensor([0.7500, 0.2500])
    """

    probabilities: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("probabilities", torch.full((classes,), 1 / classes))

    def forward(self, log_probabilities: Tensor, log_prior: Tensor) -> Tensor:
        """Return the missing information of log p (n, K) under log π (K,), with the whole target's mean prediction."""
        return _missing_given_marginal(log_probabilities, log_prior, self.probabilities.to(log_probabilities))

    @torch.no_grad()
    def replace(self, log_probabilities: Tensor) -> None:
        """Take the mean of log p (n, K) of the whole target."""
        self.probabilities.copy_(log_probabilities.exp().mean(0))


def _missing_given_marginal(log_probabilities: Tensor, log_prior: Tensor, value: Tensor) -> Tensor:
    """Mean entropy of log p (n, K) + KL(value, π); the gradient of the second term is that of the samples' own mean."""
    own = log_probabilities.exp().mean(0)
    marginal = value.clamp(min=torch.finfo(own.dtype).tiny) + (own - own.detach())
    return (marginal * (marginal.log() - log_prior)).sum() + entropies(log_probabilities).mean()


class Information(Objective):
    """Missing information of the target's predictions.

    Args:
        features: Width of the features (not used).
        classes: Number of classes K.
        momentum: Momentum of a running mean prediction, in 0..1; with 0 the batch's own mean is used.
        prior: Desired frequencies of the classes, K numbers; None: equal frequencies.
        shift: The prior is that of the source and moves to the target as described in `ClassPrior`.

    Raises:
        ValueError: The prior does not have K positive numbers, or the momentum does not lie in 0..1.

    Examples:
        >>> source = Source(torch.zeros(3, 2), torch.zeros(3, 3), torch.arange(3), labels=torch.arange(3))
        >>> undecided = Target(torch.zeros(3, 2), torch.zeros(3, 3), torch.arange(3))
        >>> round(Information(features=2, classes=3)(source, undecided).item(), 4)  # log 3
        1.0986
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
        """Return the missing information; relative to log K with a running mean."""
        return missing_information(functional.log_softmax(target.logits, 1), self.prior.log, self.marginal)

    def private_loss(self, source: Source, target: Target) -> None:
        """Update the running means in training, because `forward` changes no state; there is no private loss."""
        if not self.training:
            return
        self.prior.learn(source, target)
        if self.marginal is not None:
            self.marginal.learn(functional.log_softmax(target.logits, 1))
