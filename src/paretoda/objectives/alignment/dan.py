"""DDC (Tzeng et al., 2014) and DAN (Long et al., 2015): features with the same mean embedding in both domains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.objectives.parts.mmd import (
    SCALES,
    Estimator,
    adaptive_gaussians,
    check_estimator,
    squared_discrepancy,
    squared_distances,
)
from paretoda.types import Objective, Source, Target


@full_precision
def squared_mean_difference(source: Tensor, target: Tensor) -> Tensor:
    """The squared distance of the two means: the squared maximum mean discrepancy of the linear kernel.

    Args:
        source: shape (n, d).
        target: shape (m, d).
    """
    return (source.mean(0) - target.mean(0)).square().sum()


class Ddc(Objective):
    """The maximum mean discrepancy of the features by one kernel, squared; never negative.

    Args:
        features: width d of the features; not used.
        classes: number of classes; not used.
        kernel: "linear" compares the means, as in the paper; "gaussian" has the mean squared distance as bandwidth.
        strength: of value and gradient; the paper's weight is 0.25.
    """

    def __init__(
        self, features: int, classes: int, *, kernel: Literal["linear", "gaussian"] = "linear", strength: float = 0.25
    ) -> None:
        super().__init__()
        if kernel not in ("linear", "gaussian"):
            raise ValueError(f"kernel must be 'linear' or 'gaussian', got {kernel!r}")
        self.features, self.classes, self.kernel, self.strength = features, classes, kernel, strength

    def forward(self, source: Source, target: Target) -> Tensor:
        """Strength times the squared discrepancy."""
        if self.kernel == "linear":
            return self.strength * squared_mean_difference(source.features, target.features)
        distances = squared_distances(torch.cat([source.features, target.features]))
        return self.strength * squared_discrepancy(adaptive_gaussians(distances, [1.0]), len(source.features), "v")

    def extra_repr(self) -> str:
        """Settings."""
        return f"kernel={self.kernel!r}, strength={self.strength}"


class Dan(Objective):
    """The multi-kernel maximum mean discrepancy of the features, squared.

    The paper's weights of the kernels are all 1, as in every code; it has no warm-up.

    Args:
        features: width d of the features; not used.
        classes: number of classes; not used.
        estimator: "v" is never negative; "u" and "linear" are unbiased, "linear" is the paper's.
        scales: bandwidths σ² of the kernels, in mean squared distances of the batch.
        strength: of value and gradient.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        estimator: Estimator = "v",
        scales: Sequence[float] = SCALES,
        strength: float = 1.0,
    ) -> None:
        super().__init__()
        check_estimator(estimator)
        if not scales or min(scales) <= 0:
            raise ValueError(f"scales are positive numbers, at least one, got {scales}")
        self.features, self.classes = features, classes
        self.estimator: Estimator = estimator
        self.scales, self.strength = tuple(scales), strength

    def forward(self, source: Source, target: Target) -> Tensor:
        """Strength times the squared discrepancy."""
        distances = squared_distances(torch.cat([source.features, target.features]))
        kernel = adaptive_gaussians(distances, self.scales)
        return self.strength * squared_discrepancy(kernel, len(source.features), self.estimator)

    def extra_repr(self) -> str:
        """Settings."""
        return f"estimator={self.estimator!r}, scales={self.scales}, strength={self.strength}"
