"""DAN: features with the same mean embedding in both domains, by several kernels at once (Long et al., 2015)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from paretoda.domains import Objective, Source, Target
from paretoda.objectives.discrepancy import Estimator, check_estimator, squared_discrepancy
from paretoda.objectives.kernels import SCALES, adaptive_gaussians, squared_distances


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
