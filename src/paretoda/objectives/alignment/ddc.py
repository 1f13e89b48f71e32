"""DDC: features with the same mean in both domains (Tzeng et al., 2014)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from paretoda.domains import Objective, Source, Target
from paretoda.objectives.discrepancy import squared_discrepancy
from paretoda.objectives.full_precision import full_precision
from paretoda.objectives.kernels import adaptive_gaussians, squared_distances


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
