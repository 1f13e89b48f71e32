"""Errors of predicted values on the labelled source: the only loss of a regression without adaptation."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from paretoda.types import Objective, Source, Target


class SquaredError(Objective):
    """Mean squared error on the source, in units of its variance; the target is not used.

    Args:
        features: Width of the features (not used).
        classes: Number of outputs (not used).

    Examples:
        >>> import torch
        >>> source = Source(torch.zeros(2, 4), torch.tensor([[1.0], [3.0]]), torch.arange(2), labels=torch.ones(2))
        >>> SquaredError(features=4, classes=1)(source, Target(source.features, source.logits, source.index))
        tensor(2.)
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.features, self.classes = features, classes

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the mean squared error of the source."""
        return functional.mse_loss(source.logits[:, 0], source.labels)


class HuberError(SquaredError):
    """Huber's loss on the source: squared up to one standard deviation of its values, linear above, for outliers.

    It is scaled to equal half the squared error where all errors are small.

    Args:
        features: Width of the features (not used).
        classes: Number of outputs (not used).

    Examples:
        >>> import torch
        >>> source = Source(torch.zeros(2, 4), torch.tensor([[1.0], [3.0]]), torch.arange(2), labels=torch.ones(2))
        >>> HuberError(features=4, classes=1)(source, Target(source.features, source.logits, source.index))
        tensor(0.7500)
    """

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the mean of Huber's loss on the source."""
        return functional.huber_loss(source.logits[:, 0], source.labels)
