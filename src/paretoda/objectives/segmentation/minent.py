"""MinEnt: every pixel of the target becomes certain (Vu et al., 2019)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from paretoda.domains import Objective, Source, Target
from paretoda.objectives.segmentation.maps import outputs, pixel_entropies


def missing_shares(logits: Tensor, ratios: Tensor, least: float) -> Tensor:
    """Σ_k max(0, least · ratio_k - mean p_k): how far classes are below a part of their share in the source.

    Args:
        logits: shape (n, K, h, w).
        ratios: shares of the classes in the source, shape (K,).
        least: μ, which part of it is asked for.
    """
    return (least * ratios - logits.softmax(1).mean((0, 2, 3))).clamp(min=0).sum()


class MinEnt(Objective):
    """Mean entropy of the target's pixels, between 0 and 1. Alone it is content with one class for all.

    Args:
        features: width of the features; not used.
        classes: number of classes K.
        strength: of the prediction's entropy.
        auxiliary: of the entropy of each further output.
        enlarge: logits to the size of the inputs first, as published, at the cost that this has.
        ratios: shares of the K classes in the source; then `missing_shares` are lowered along with the entropy.
        least: which part of these shares is asked for.
    """

    ratios: Tensor | None

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        strength: float = 1e-3,
        auxiliary: float = 2e-4,
        enlarge: bool = False,
        ratios: Sequence[float] | Tensor | None = None,
        least: float = 0.5,
    ) -> None:
        super().__init__()
        if ratios is not None and len(ratios) != classes:
            raise ValueError(f"there are {classes} classes and {len(ratios)} ratios: they must be as many")
        self.features, self.classes = features, classes
        self.strength, self.auxiliary, self.enlarge, self.least = strength, auxiliary, enlarge, least
        self.register_buffer("ratios", None if ratios is None else torch.as_tensor(ratios, dtype=torch.float32))

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Strength times the mean entropy, and the same of further outputs."""
        first, *further = outputs(target, 1 + len(target.further), enlarge=self.enlarge)
        loss = self.strength * self._loss(first)
        return loss + self.auxiliary * sum(self._loss(logits) for logits in further) if further else loss

    def extra_repr(self) -> str:
        """Settings."""
        return f"strength={self.strength}, auxiliary={self.auxiliary}, enlarge={self.enlarge}"

    def _loss(self, logits: Tensor) -> Tensor:
        entropy = pixel_entropies(logits).mean()
        if self.ratios is None:
            return entropy
        return entropy + missing_shares(logits, self.ratios.to(logits), self.least)
