"""MinEnt: every pixel of the target becomes certain (Vu et al., 2019); entropy and self-information of logit maps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.maps import enlarged
from paretoda.types import Domain, Objective, Source, Target


def outputs(domain: Domain, levels: int, *, enlarge: bool) -> list[Tensor]:
    """Logits of the prediction and of the first further outputs.

    Args:
        domain: with maps.
        levels: how many outputs there shall be in all.
        enlarge: to the size of the inputs.

    Returns:
        Shape (n, K, h, w) each.
    """
    found = [domain.logits, *domain.further][:levels]
    if len(found) < levels:
        raise ValueError(f"this objective looks at {levels} outputs of the network, and it has {len(found)}")
    if not enlarge:
        return found
    if domain.inputs is None:
        raise ValueError("enlarge needs the domain's inputs, whose size the maps take")
    height, width = domain.inputs.shape[-2:]
    return [enlarged(maps, (height, width)) for maps in found]


def self_information(logits: Tensor) -> Tensor:
    """-p_k log p_k / log K of every class and pixel, in log space: probabilities may underflow.

    Args:
        logits: shape (n, K, h, w).

    Returns:
        Shape (n, K, h, w), not negative.
    """
    log_p = functional.log_softmax(logits, 1)
    return -(log_p.exp() * log_p) / math.log(logits.shape[1])


def pixel_entropies(logits: Tensor) -> Tensor:
    """The entropy of every pixel's prediction over log K: 0 certain, 1 uniform.

    Args:
        logits: shape (n, K, h, w).

    Returns:
        Shape (n, h, w).
    """
    return self_information(logits).sum(1)


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
