"""Deep CORAL: activations with the same covariance in both domains (Sun and Saenko, 2016)."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.types import Objective, Source, Target


def covariance(rows: Tensor) -> Tensor:
    """The unbiased covariance of the columns; 0 for a single row.

    Args:
        rows: shape (n, d).

    Returns:
        Shape (d, d).
    """
    centred = rows - rows.mean(0)
    return centred.T @ centred / max(len(rows) - 1, 1)


@full_precision
def coral(source: Tensor, target: Tensor) -> Tensor:
    """The squared Frobenius distance of the two covariances, over 4 d².

    Args:
        source: shape (n, d).
        target: shape (m, d).
    """
    return (covariance(source) - covariance(target)).square().mean() / 4


@full_precision
def moment_distance(source: Tensor, target: Tensor) -> Tensor:
    """Mean squared differences of the means and of the covariances, both as they are; same shapes as `coral`."""
    means = (source.mean(0) - target.mean(0)).square().mean()
    return (covariance(source) - covariance(target)).square().mean() + means


_STRENGTHS = {"features": 100.0, "logits": 1.0}
"""By the paper's rule: in the end the distance is about as large as the source's loss. Measured on 256 features."""


class Coral(Objective):
    """The distance of the covariances of source and target.

    Args:
        features: width of the features; not used.
        classes: number of classes; not used.
        layer: whose covariances: those of the features, or of the logits, as in the paper.
        means: compare the means as well, and leave out the factor 1/4, as in some later codes.
        strength: of value and gradient; None: 100 for features and 1 for logits.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        layer: Literal["features", "logits"] = "features",
        means: bool = False,
        strength: float | None = None,
    ) -> None:
        super().__init__()
        if layer not in ("features", "logits"):
            raise ValueError(f"layer must be 'features' or 'logits', got {layer!r}")
        self.features, self.classes = features, classes
        self.layer, self.means = layer, means
        self.strength = _STRENGTHS[layer] if strength is None else strength

    def forward(self, source: Source, target: Target) -> Tensor:
        """Strength times the distance."""
        distance = moment_distance if self.means else coral
        if self.layer == "logits":
            return self.strength * distance(source.logits, target.logits)
        return self.strength * distance(source.features, target.features)

    def extra_repr(self) -> str:
        """Settings."""
        return f"layer={self.layer!r}, means={self.means}, strength={self.strength}"
