"""MCC: minimum class confusion of the target's predictions (Jin et al., 2020).

Row j of the paper's normalised confusion matrix is the distribution of the predictions of class j; its diagonal entry
is Σ w y_j² / Σ w y_j over the samples. In log space this is exact also for classes that are never predicted: a small
constant in the divisor would reward their disappearance and would not penalise one class for all samples.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.objectives.parts.weights import weighted_mean
from paretoda.objectives.target.information import entropies
from paretoda.types import Objective, Source, Target

_LEAST = 1e-6
"""Smallest weight of a sample, so that its logarithm is finite."""


@full_precision
def class_confusion(
    logits: Tensor, temperature: float, weights: Tensor | None = None, class_weights: Tensor | None = None
) -> Tensor:
    """Mean over classes of the share of a class's predictions that goes to other classes; 0 to (K - 1) / K.

    Certain samples count up to twice as much, by their constant weights w = 1 + exp(-H). The common factor by which the
    paper gives the weights mean 1 cancels in the shares.

    Args:
        logits: Logits, shape (n, K).
        temperature: Divisor of the logits, so that confident predictions still show what they confuse.
        weights: How much each sample counts besides, shape (n,); None: all the same.
        class_weights: How much each class counts in the mean, shape (K,); None: all the same. A class that the target
            may lack must not count: nothing but its own few predictions says that it should be sure of itself.

    Examples:
        >>> round(class_confusion(torch.zeros(4, 2), temperature=1.0).item(), 4)  # every class is half the other
        0.5
    """
    log_y = functional.log_softmax(logits / temperature, 1)
    log_weights = torch.exp(-entropies(log_y.detach())).log1p().unsqueeze(1)
    if weights is not None:
        log_weights = log_weights + weights.to(log_y).clamp(min=_LEAST).log().unsqueeze(1)
    log_kept = (log_weights + 2 * log_y).logsumexp(0) - (log_weights + log_y).logsumexp(0)
    confusion = weighted_mean(-log_kept.expm1(), class_weights)
    return confusion if weights is None else weights.mean().to(confusion) * confusion


class Mcc(Objective):
    """Class confusion of the target's predictions.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).
        temperature: Temperature of the predictions; 2.5 in the paper, 3 on VisDA.

    Raises:
        ValueError: The temperature is not positive.

    Examples:
        >>> source = Source(torch.zeros(4, 2), torch.zeros(4, 2), torch.arange(4), labels=torch.arange(4) % 2)
        >>> target = Target(torch.zeros(4, 2), torch.zeros(4, 2), torch.arange(4))
        >>> round(Mcc(features=2, classes=2)(source, target).item(), 4)
        0.5
    """

    label_sets = ("closed", "partial", "open")

    def __init__(self, features: int, classes: int, *, temperature: float = 2.5) -> None:
        super().__init__()
        if temperature <= 0:
            raise ValueError(f"the temperature must be positive, got {temperature}")
        self.features, self.classes, self.temperature = features, classes, temperature

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the confusion."""
        return class_confusion(target.logits, self.temperature, target.weights, target.class_weights)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"temperature={self.temperature}"
