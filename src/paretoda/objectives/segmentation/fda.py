"""FDA's entropy: pixels of the target that are in doubt become certain (Yang and Soatto, 2020).

The other half of the method, the exchange of low frequencies, changes the source's images and is a translation.
"""

from __future__ import annotations

from torch import Tensor

from paretoda.domains import Objective, Source, Target
from paretoda.objectives.segmentation.maps import pixel_entropies


def robust(entropies: Tensor, eta: float) -> Tensor:
    """(E² + 1e-8)^η: for η > 1/2 pixels in doubt count more than certain ones.

    Args:
        entropies: between 0 and 1, any shape.
        eta: η.
    """
    return (entropies.square() + 1e-8) ** eta


class FdaEntropy(Objective):
    """Mean robust entropy of the target's pixels, at the resolution of the features.

    Args:
        features: width of the features; not used.
        classes: number of classes; not used.
        strength: of value and gradient.
        eta: η, above 0.
    """

    def __init__(self, features: int, classes: int, *, strength: float = 0.005, eta: float = 2.0) -> None:
        super().__init__()
        if eta <= 0:
            raise ValueError(f"eta must be above 0, got {eta}")
        self.features, self.classes, self.strength, self.eta = features, classes, strength, eta

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Strength times the mean."""
        return self.strength * robust(pixel_entropies(target.logits), self.eta).mean()

    def extra_repr(self) -> str:
        """Settings."""
        return f"strength={self.strength}, eta={self.eta}"
