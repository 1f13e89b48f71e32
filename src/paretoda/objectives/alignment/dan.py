"""DDC (Tzeng et al., 2014) and DAN (Long et al., 2015): features of both domains have the same mean embedding."""

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
    """Squared distance of the two means: the squared maximum mean discrepancy of the linear kernel.

    Args:
        source: Features of the source, shape (n, d).
        target: Features of the target, shape (m, d).

    Examples:
        >>> squared_mean_difference(torch.zeros(3, 2), torch.ones(5, 2))
        tensor(2.)
    """
    return (source.mean(0) - target.mean(0)).square().sum()


class Ddc(Objective):
    """Squared maximum mean discrepancy of the features by one kernel; never negative.

    Args:
        features: Width d of the features (not used).
        classes: Number of classes (not used).
        kernel: "linear" compares the means, as in the paper; "gaussian" has the mean squared distance as bandwidth.
        strength: Factor of the value and the gradient; the paper's weight is 0.25.

    Raises:
        ValueError: The kernel is unknown.

    Examples:
        >>> source = Source(torch.zeros(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> target = Target(torch.ones(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> Ddc(features=4, classes=3)(source, target)  # 0.25 times the squared distance of the means
        tensor(1.)
    """

    def __init__(
        self, features: int, classes: int, *, kernel: Literal["linear", "gaussian"] = "linear", strength: float = 0.25
    ) -> None:
        super().__init__()
        if kernel not in ("linear", "gaussian"):
            raise ValueError(f"kernel must be 'linear' or 'gaussian', got {kernel!r}")
        self.features, self.classes, self.kernel, self.strength = features, classes, kernel, strength

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the strength times the squared discrepancy."""
        if self.kernel == "linear":
            return self.strength * squared_mean_difference(source.features, target.features)
        distances = squared_distances(torch.cat([source.features, target.features]))
        return self.strength * squared_discrepancy(adaptive_gaussians(distances, [1.0]), len(source.features), "v")

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"kernel={self.kernel!r}, strength={self.strength}"


class Dan(Objective):
    """Squared multi-kernel maximum mean discrepancy of the features.

    The weights of the kernels are all 1, as in every published code, and the method has no warm-up.

    Args:
        features: Width d of the features (not used).
        classes: Number of classes (not used).
        estimator: "v" is never negative; "u" and "linear" are unbiased, and "linear" is the paper's.
        scales: Bandwidths σ² of the kernels, in mean squared distances of the batch.
        strength: Factor of the value and the gradient.

    Raises:
        ValueError: The estimator is unknown, or a scale is not positive.

    Examples:
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> same = Target(source.features, source.logits, torch.arange(8))
        >>> abs(Dan(features=4, classes=3)(source, same).item()) < 1e-6
        True
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
        """Return the strength times the squared discrepancy."""
        distances = squared_distances(torch.cat([source.features, target.features]))
        kernel = adaptive_gaussians(distances, self.scales)
        return self.strength * squared_discrepancy(kernel, len(source.features), self.estimator)

    @property
    def offset(self) -> float:
        """The strength for estimators that may be negative."""
        return 0.0 if self.estimator == "v" else self.strength

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"estimator={self.estimator!r}, scales={self.scales}, strength={self.strength}"
