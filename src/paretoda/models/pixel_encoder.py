"""The encoder of a segmenter: one or both maps of a body as features, and BatchNorm that may be frozen."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

Norm = Literal["train", "affine-frozen", "frozen", "group"]
"""How maps are normalised; `SegmenterArchitecture` says what each means."""


class PixelEncoder(nn.Module):
    """Images (n, 3, h, w) to features (n, d, h', w'): a body's last map, or its last two, [lower; last].

    Args:
        body: images -> (lower map, last map), of one resolution.
        levels: 1: the last map alone; 2: both, one behind the other along the channels.
        norm: of the body's BatchNorm layers; "group" promises that there are none.
    """

    def __init__(self, body: nn.Module, levels: int, norm: Norm) -> None:
        super().__init__()
        self.body = body
        self.levels = levels
        self.frozen = norm == "frozen"
        if norm in ("affine-frozen", "frozen"):
            for layer in self._batch_norms():
                layer.requires_grad_(False)
        self.train()

    def _batch_norms(self) -> list[_BatchNorm]:
        return [layer for layer in self.modules() if isinstance(layer, _BatchNorm)]

    def train(self, mode: bool = True) -> PixelEncoder:
        """As in every module, but frozen BatchNorm layers stay in evaluation mode."""
        super().train(mode)
        if self.frozen:
            for layer in self._batch_norms():
                layer.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """The features, shape (n, d, h', w')."""
        lower, last = self.body(images)
        features: Tensor = last if self.levels == 1 else torch.cat([lower, last], dim=1)
        return features
