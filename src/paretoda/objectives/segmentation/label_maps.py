"""Label maps of a whole set, which a refresh replaces and a state holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.domains import Model, Snapshot
from paretoda.maps import enlarged


class LabelMaps(nn.Module):
    """Constant maps, one for each image of a set; none at first."""

    maps: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("maps", torch.empty(0, dtype=torch.uint8))

    def __len__(self) -> int:
        return len(self.maps)

    def replace(self, maps: Tensor) -> None:
        """Keep these, shape (n, ..., h, w), instead of the present ones."""
        self.maps = maps.detach().to(self.maps.device)

    def forward(self, index: Tensor, like: Tensor) -> Tensor:
        """The maps of the images at these positions, which must have the resolution of `like` (n, K, h, w)."""
        found = self.maps[index]
        if found.shape[-2:] != like.shape[-2:]:
            sizes = f"{tuple(found.shape[-2:])} and {tuple(like.shape[-2:])}"
            raise ValueError(f"label maps and predictions have sizes {sizes}: the target's images must not be cropped")
        return found

    def extra_repr(self) -> str:
        """How many there are."""
        return f"maps={len(self.maps)}"

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        saved = state_dict.get(prefix + "maps")
        if saved is not None:
            self.maps = torch.empty(saved.shape, dtype=saved.dtype, device=self.maps.device)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def predicted_maps(snapshot: Snapshot, *, mirror: bool = False, scale: float = 1.0) -> Iterator[Tensor]:
    """The log p of all training images of the target, in order, by the model in evaluation mode; the mode is restored.

    Args:
        snapshot: whose model and images.
        mirror: p is the mean of those of an image and of its mirror image.
        scale: images are shown to the model in this size; the maps have the resolution of the images' own size.

    Returns:
        Batches of shape (b, K, h, w).
    """
    before = [(layer, layer.training) for layer in snapshot.model.modules()]
    snapshot.model.eval()
    try:
        for inputs in snapshot.target_inputs():
            with torch.no_grad():  # not around the yield: it would hold for the caller as well
                log_p = _log_p(snapshot.model, inputs, mirror=mirror, scale=scale)
            yield log_p
    finally:
        for layer, training in before:
            layer.training = training


def _log_p(model: Model, inputs: Tensor, *, mirror: bool, scale: float) -> Tensor:
    """Of the images (b, 3, H, W), shape (b, K, h, w)."""
    seen = enlarged(inputs, [max(1, round(scale * side)) for side in inputs.shape[-2:]])
    log_p = functional.log_softmax(model(seen), 1)
    if mirror:
        other = functional.log_softmax(model(seen.flip(-1)), 1).flip(-1)
        log_p = torch.logaddexp(log_p, other) - math.log(2)
    if seen.shape == inputs.shape:
        return log_p
    size = model(inputs[:1]).shape[-2:]
    return enlarged(log_p.exp(), size).clamp(min=torch.finfo(log_p.dtype).tiny).log()
