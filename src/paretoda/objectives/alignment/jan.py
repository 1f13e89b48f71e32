"""JAN: features and predictions with the same joint mean embedding in both domains (Long et al., 2017)."""

from __future__ import annotations

import torch
from torch import Tensor

from paretoda.domains import Objective, Source, Target
from paretoda.objectives.discrepancy import Estimator, check_estimator, squared_discrepancy
from paretoda.objectives.kernels import adaptive_gaussians, gaussian, squared_distances
from paretoda.objectives.warm_up import warm_up

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
