"""JAN: features and predictions with the same joint mean embedding in both domains, and JAN-A (Long et al., 2017)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.differentiation import frozen
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
    """The product of the features' kernel and the predictions', pair by pair: alike only if alike in both.

    Args:
        features: of both domains, shape (n, d).
        predictions: probabilities of the same samples, shape (n, K).

    Returns:
        Shape (n, n).
    """
    return adaptive_gaussians(squared_distances(features)) * gaussian(squared_distances(predictions), _VARIANCE)


class Jan(Objective):
    """The joint maximum mean discrepancy of features and predictions, squared.

    The gradient reaches encoder and head through the predictions as well: both lower it.

    Args:
        features: width d of the features; not used.
        classes: number of classes; not used.
        estimator: "v" is never negative; "u" and "linear" are unbiased, "linear" is the paper's.
        warm_up: whether `advance` raises the strength from 0 to 1; without it, and before the first call, it is 1.
    """

    def __init__(self, features: int, classes: int, *, estimator: Estimator = "v", warm_up: bool = True) -> None:
        super().__init__()
        check_estimator(estimator)
        self.features, self.classes, self.warm_up = features, classes, warm_up
        self.estimator: Estimator = estimator
        self.strength = 1.0

    def forward(self, source: Source, target: Target) -> Tensor:
        """Strength times the squared discrepancy."""
        kernel = joint_kernel(
            torch.cat([source.features, target.features]), torch.cat([source.logits, target.logits]).softmax(1)
        )
        return self.strength * squared_discrepancy(kernel, len(source.features), self.estimator)

    def advance(self, progress: float) -> None:
        """Set the strength to that of this share of the training."""
        self.strength = warm_up(progress) if self.warm_up else 1.0

    def extra_repr(self) -> str:
        """Settings."""
        return f"estimator={self.estimator!r}, warm_up={self.warm_up}"


class Map(nn.Module):
    """x + W x + c, at first the identity, to which weight decay pulls it back.

    Args:
        width: of the rows.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(width, width)), nn.Parameter(torch.zeros(width))

    def forward(self, rows: Tensor, statistics: Statistics) -> Tensor:  # noqa: ARG002 - it has no BatchNorm
        """The mapped rows, same shape."""
        return rows + functional.linear(rows, self.weight, self.bias)


class JanA(Objective):
    """The joint maximum mean discrepancy behind linear maps of features and predictions that raise it.

    Args:
        features: width d of the features.
        classes: number of classes K.
        estimator: "v" is never negative; "u" and "linear" are unbiased, "linear" is the paper's.
        warm_up: whether `advance` raises the strength from 0 to 1; without it, and before the first call, it is 1.
        rate: of the maps' learning, as a share of the other networks'.
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
        """Strength times the squared discrepancy."""
        return self.strength * self._discrepancy(source, target, lambda network, rows: frozen(network, rows, "batch"))

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Minus the squared discrepancy, on detached features and predictions, times the rate."""
        return -self.rate * self._discrepancy(source, target, lambda network, rows: network(rows.detach(), "learn"))

    def advance(self, progress: float) -> None:
        """Set the strength to that of this share of the training."""
        self.strength = warm_up(progress) if self.warm_up else 1.0

    def extra_repr(self) -> str:
        """Settings."""
        return f"estimator={self.estimator!r}, warm_up={self.warm_up}, rate={self.rate}"

    def _discrepancy(self, source: Source, target: Target, seen: Callable[[nn.Module, Tensor], Tensor]) -> Tensor:
        features = seen(self.of_features, torch.cat([source.features, target.features]))
        predictions = seen(self.of_predictions, torch.cat([source.logits, target.logits]).softmax(1))
        return squared_discrepancy(joint_kernel(features, predictions), len(source.features), self.estimator)
