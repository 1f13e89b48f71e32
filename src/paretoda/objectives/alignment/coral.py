"""Deep CORAL: activations of both domains have the same covariance (Sun and Saenko, 2016)."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.types import Objective, Source, Target

_STRENGTHS = {"features": 100.0, "logits": 1.0}
"""Default strengths by the paper's rule: at the end of training the distance is about as large as the source loss.

Measured on 256 features.
"""


def covariance(rows: Tensor) -> Tensor:
    """Unbiased covariance of the columns; 0 for a single row.

    Args:
        rows: Samples, shape (n, d).

    Returns:
        Shape (d, d).
    """
    centred = rows - rows.mean(0)
    return centred.T @ centred / max(len(rows) - 1, 1)


@full_precision
def coral(source: Tensor, target: Tensor) -> Tensor:
    """Squared Frobenius distance of the two covariances, over 4 d².

    Args:
        source: Features or logits of the source, shape (n, d).
        target: Features or logits of the target, shape (m, d).

    Examples:
        >>> import torch
        >>> coral(torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [1.0]]))
        tensor(1.)
    """
    return (covariance(source) - covariance(target)).square().mean() / 4


@full_precision
def moment_distance(source: Tensor, target: Tensor) -> Tensor:
    """Sum of the mean squared differences of the means and of the covariances.

    Args:
        source: Features or logits of the source, shape (n, d).
        target: Features or logits of the target, shape (m, d).
    """
    means = (source.mean(0) - target.mean(0)).square().mean()
    return (covariance(source) - covariance(target)).square().mean() + means


class Coral(Objective):
    """Distance between the covariances of source and target.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).
        layer: Activations that are compared: the "features", or the "logits" as in the paper.
        means: Compare the means as well and leave out the factor 1/4, as in some later codes.
        strength: Factor of the value and the gradient; None: 100 for features and 1 for logits.

    Raises:
        ValueError: The layer is unknown.

    Examples:
        >>> import torch
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> shifted = Target(source.features + 1, source.logits, torch.arange(8))
        >>> round(Coral(features=4, classes=3)(source, shifted).item(), 4)  # a shift changes no covariance
        0.0
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
        """Return the strength times the distance."""
        distance = moment_distance if self.means else coral
        if self.layer == "logits":
            return self.strength * distance(source.logits, target.logits)
        return self.strength * distance(source.features, target.features)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"layer={self.layer!r}, means={self.means}, strength={self.strength}"
