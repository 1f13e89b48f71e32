"""MinEnt: every pixel of the target becomes certain (Vu et al., 2019); entropy and self-information of logit maps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.maps import resize_maps
from paretoda.types import Domain, Objective, Source, Target


def output_logits(domain: Domain, levels: int, *, enlarge: bool) -> list[Tensor]:
    """Logits of the prediction and of the first extra outputs.

    Args:
        domain: Domain whose logits are maps.
        levels: Total number of outputs.
        enlarge: Enlarge the maps to the size of the inputs.

    Returns:
        A list of tensors of shape (n, K, h, w).

    Raises:
        ValueError: The network has fewer outputs, or there are no inputs whose size the maps could take.
    """
    found = [domain.logits, *domain.extra_logits][:levels]
    if len(found) < levels:
        raise ValueError(f"this objective reads {levels} outputs of the network, and it has {len(found)}")
    if not enlarge:
        return found
    if domain.inputs is None:
        raise ValueError("enlarge needs the domain's inputs, whose size the maps take")
    height, width = domain.inputs.shape[-2:]
    return [resize_maps(maps, (height, width)) for maps in found]


def self_information(logits: Tensor) -> Tensor:
    """-p_k log p_k / log K of every class and pixel, in log space because probabilities may underflow.

    Args:
        logits: Logits, shape (n, K, h, w).

    Returns:
        Shape (n, K, h, w), non-negative.
    """
    log_p = functional.log_softmax(logits, 1)
    return -(log_p.exp() * log_p) / math.log(logits.shape[1])


def pixel_entropies(logits: Tensor) -> Tensor:
    """Entropy of every pixel's prediction over log K: 0 certain, 1 uniform.

    Args:
        logits: Logits, shape (n, K, h, w).

    Returns:
        Shape (n, h, w).

    Examples:
        >>> pixel_entropies(torch.zeros(1, 2, 1, 2))
        tensor([[[1., 1.]]])
    """
    return self_information(logits).sum(1)


def missing_shares(logits: Tensor, ratios: Tensor, least: float) -> Tensor:
    """Σ_k max(0, least · ratio_k - mean p_k): how far classes are below a part of their share in the source.

    Args:
        logits: Logits, shape (n, K, h, w).
        ratios: Shares of the classes in the source, shape (K,).
        least: μ, the part of the share that is required.
    """
    return (least * ratios - logits.softmax(1).mean((0, 2, 3))).clamp(min=0).sum()


class MinEnt(Objective):
    """Mean entropy of the target's pixels, between 0 and 1; it does not prevent one class for all pixels.

    Args:
        features: Width of the features (not used).
        classes: Number of classes K.
        strength: Factor of the entropy of the prediction.
        auxiliary: Factor of the entropy of each extra output.
        enlarge: Enlarge logits to the size of the inputs first, as published, at a higher cost.
        ratios: Shares of the K classes in the source; with them `missing_shares` is lowered along with the entropy.
        least: Part of these shares that is required.

    Raises:
        ValueError: There are not K ratios.

    Examples:
        >>> logits = torch.zeros(1, 3, 4, 4)
        >>> target = Target(torch.zeros(1, 2, 4, 4), logits, torch.arange(1))
        >>> source = Source(target.features, logits, torch.arange(1), labels=torch.zeros(1, 4, 4, dtype=torch.long))
        >>> round(MinEnt(features=2, classes=3, strength=1.0)(source, target).item(), 4)
        1.0
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
        """Return the strength times the mean entropy, plus that of the extra outputs."""
        first, *extra = output_logits(target, 1 + len(target.extra_logits), enlarge=self.enlarge)
        loss = self.strength * self._loss(first)
        return loss + self.auxiliary * sum(self._loss(logits) for logits in extra) if extra else loss

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"strength={self.strength}, auxiliary={self.auxiliary}, enlarge={self.enlarge}"

    def _loss(self, logits: Tensor) -> Tensor:
        entropy = pixel_entropies(logits).mean()
        if self.ratios is None:
            return entropy
        return entropy + missing_shares(logits, self.ratios.to(logits), self.least)
