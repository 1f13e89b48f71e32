"""JAN: features and predictions of both domains have the same joint mean embedding; and JAN-A (Long et al., 2017)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.differentiation import call_frozen
from paretoda.objectives.parts.discriminator import Statistics, warm_up
from paretoda.objectives.parts.mmd import (
    Estimator,
    adaptive_gaussians,
    check_estimator,
    gaussian,
    squared_discrepancy,
    squared_distances,
)
from paretoda.types import Objective, Source, Target

_VARIANCE = 0.92**2
"""Bandwidth σ² of the kernel of the predictions, as in the authors' code."""


def joint_kernel(features: Tensor, predictions: Tensor) -> Tensor:
    """Product of the kernels of features and of predictions for all pairs: large only where both are alike.

    Args:
        features: Features of both domains, shape (n, d).
        predictions: Probabilities of the same samples, shape (n, K).

    Returns:
        Shape (n, n).

    Examples:
        >>> joint_kernel(torch.randn(5, 4), torch.randn(5, 3).softmax(1)).diagonal().round(decimals=3)  # five kernels
        tensor([5., 5., 5., 5., 5.])
    """
    return adaptive_gaussians(squared_distances(features)) * gaussian(squared_distances(predictions), _VARIANCE)


class Jan(Objective):
    """Squared joint maximum mean discrepancy of features and predictions.

    The gradient reaches encoder and head through the predictions as well: both lower the objective.

    Args:
        features: Width d of the features (not used).
        classes: Number of classes (not used).
        estimator: "v" is never negative; "u" and "linear" are unbiased, and "linear" is the paper's.
        warm_up: Whether `advance` raises the strength from 0 to 1; otherwise, and before the first call, it is 1.

    Raises:
        ValueError: The estimator is unknown.

    Examples:
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> target = Target(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> bool(Jan(features=4, classes=3)(source, target) > 0)
        True
    """

    def __init__(self, features: int, classes: int, *, estimator: Estimator = "v", warm_up: bool = True) -> None:
        super().__init__()
        check_estimator(estimator)
        self.features, self.classes, self.warm_up = features, classes, warm_up
        self.estimator: Estimator = estimator
        self.strength = 1.0

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the strength times the squared discrepancy."""
        kernel = joint_kernel(
            torch.cat([source.features, target.features]), torch.cat([source.logits, target.logits]).softmax(1)
        )
        return self.strength * squared_discrepancy(kernel, len(source.features), self.estimator)

    def advance(self, progress: float) -> None:
        """Set the strength for this share of the training."""
        self.strength = warm_up(progress) if self.warm_up else 1.0

    @property
    def offset(self) -> float:
        """What is missing of the strength, and 1 for estimators that may be negative."""
        return 1.0 if self.estimator != "v" else 1.0 - self.strength

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"estimator={self.estimator!r}, warm_up={self.warm_up}"


class Map(nn.Module):
    """Affine map x + W x + c; it starts as the identity, to which weight decay pulls it back.

    Args:
        width: Width of the rows.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(width, width)), nn.Parameter(torch.zeros(width))

    def forward(self, rows: Tensor, statistics: Statistics) -> Tensor:  # noqa: ARG002 - it has no BatchNorm
        """Return the mapped rows, of the same shape."""
        return rows + functional.linear(rows, self.weight, self.bias)


class JanA(Objective):
    """Squared joint maximum mean discrepancy behind linear maps of features and predictions that raise it.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        estimator: "v" is never negative; "u" and "linear" are unbiased, and "linear" is the paper's.
        warm_up: Whether `advance` raises the strength from 0 to 1; otherwise, and before the first call, it is 1.
        rate: Learning rate of the maps as a share of that of the other networks.

    Raises:
        ValueError: The estimator is unknown.

    Examples:
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> target = Target(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> objective = JanA(features=4, classes=3)
        >>> bool(objective(source, target) > 0), bool(objective.private_loss(source, target) < 0)
        (True, True)
    """

    def __init__(
        self, features: int, classes: int, *, estimator: Estimator = "v", warm_up: bool = True, rate: float = 0.1
    ) -> None:
        super().__init__()
        check_estimator(estimator)
        self.warm_up, self.rate, self.strength = warm_up, rate, 1.0
        self.estimator: Estimator = estimator
        self.of_features, self.of_predictions = Map(features), Map(classes)

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the strength times the squared discrepancy."""
        return self.strength * self._discrepancy(
            source, target, lambda network, rows: call_frozen(network, rows, "batch")
        )

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Return minus the rate times the squared discrepancy, on detached features and predictions."""
        return -self.rate * self._discrepancy(source, target, lambda network, rows: network(rows.detach(), "learn"))

    def advance(self, progress: float) -> None:
        """Set the strength for this share of the training."""
        self.strength = warm_up(progress) if self.warm_up else 1.0

    @property
    def offset(self) -> float:
        """What is missing of the strength, and 1 for estimators that may be negative."""
        return 1.0 if self.estimator != "v" else 1.0 - self.strength

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"estimator={self.estimator!r}, warm_up={self.warm_up}, rate={self.rate}"

    def _discrepancy(self, source: Source, target: Target, call: Callable[[nn.Module, Tensor], Tensor]) -> Tensor:
        features = call(self.of_features, torch.cat([source.features, target.features]))
        predictions = call(self.of_predictions, torch.cat([source.logits, target.logits]).softmax(1))
        return squared_discrepancy(joint_kernel(features, predictions), len(source.features), self.estimator)
