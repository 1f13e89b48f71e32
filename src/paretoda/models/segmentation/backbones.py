"""Segmentation backbones by name: how each is built and loaded, and its default settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from paretoda.core.options import unknown
from paretoda.models.segmentation.deeplab import DeepLabBody, deeplab_resnet50, deeplab_resnet101, load_body
from paretoda.models.segmentation.small import DilatedBody, HypercolumnBody

Norm = Literal["train", "affine-frozen", "frozen", "group"]
"""Normalisation of maps; `SegmenterArchitecture` explains the values."""
_CHANNELS = 64
SMALL = "dilated"
"""Name of the default backbone."""


class PixelEncoder(nn.Module):
    """Encoder from images (n, 3, h, w) to features (n, d, h', w'): a body's last map, or its last two, [lower; last].

    Args:
        body: Network from images to (lower map, last map), of one resolution.
        levels: 1: the last map alone; 2: both, concatenated along the channels.
        norm: Treatment of the body's BatchNorm layers; "group" asserts that there are none.
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
        """Set the mode as in every module, but keep frozen BatchNorm layers in evaluation mode."""
        super().train(mode)
        if self.frozen:
            for layer in self._batch_norms():
                layer.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Return the features, shape (n, d, h', w')."""
        lower, last = self.body(images)
        features: Tensor = last if self.levels == 1 else torch.cat([lower, last], dim=1)
        return features


@dataclass(frozen=True)
class PixelBackbone:
    """Description of a body from images to two maps, before it is built.

    Args:
        build: Function from the channels of the maps and the norm to the body, with random weights.
        rates: Dilation rates of the classifiers' convolutions; the small ones suit images of about 120x160.
        load: Function that puts the weights of a file into what `build` made.
        own_widths: Numbers of channels of its maps if they are fixed; None: as many as requested.
        norm: Default normalisation; `SegmenterArchitecture` explains the values.
        groups: Whether it can be built with GroupNorm.
        head: Factor of the classifiers' learning rate.
        optimiser: Optimiser that trains it.
        adam: Learning rate of Adam.
        convention: Pixel normalisation convention of its published weights, a name of `CONVENTIONS`.
        any_size: Whether an exported file takes images of any size.
    """

    build: Callable[[int, Norm], nn.Module]
    rates: tuple[int, ...] = (1, 2, 4, 6)
    load: Callable[[Any, Path], object] = load_body
    own_widths: tuple[int, int] | None = None
    norm: Norm = "train"
    groups: bool = False
    head: float = 1.0
    optimiser: Literal["adam", "sgd"] = "adam"
    adam: float = 3e-3
    convention: Literal["torchvision", "efficientnet"] = "torchvision"
    any_size: bool = True

    def widths(self, channels: int) -> tuple[int, int]:
        """Numbers of channels of both maps for the requested number; 0 means 64."""
        return self.own_widths or (channels or _CHANNELS,) * 2


def _deeplab(build: Callable[[], DeepLabBody]) -> PixelBackbone:
    """Describe DeepLab as published: fixed BatchNorm factors, and classifiers that learn ten times as fast, by SGD."""
    return PixelBackbone(
        lambda _channels, _norm: build(),
        rates=(6, 12, 18, 24),
        own_widths=DeepLabBody.widths,
        norm="affine-frozen",
        head=10.0,
        optimiser="sgd",
    )


SEGMENTATION_BACKBONES: dict[str, PixelBackbone] = {
    SMALL: PixelBackbone(
        lambda channels, norm: DilatedBody(channels, "group" if norm == "group" else "batch"), groups=True
    ),
    "efficientnet-lite0": PixelBackbone(
        lambda channels, _norm: HypercolumnBody(channels),
        load=HypercolumnBody.load,
        adam=1e-3,
        convention="efficientnet",
        any_size=False,  # its padding depends on the size at every layer, which torch cannot export symbolically
    ),
    "deeplab-resnet50": _deeplab(deeplab_resnet50),
    "deeplab-resnet101": _deeplab(deeplab_resnet101),
}
"""Name -> backbone of a segmenter."""


def find_pixel_backbone(name: str) -> PixelBackbone:
    """Return the backbone of that name.

    Raises:
        ValueError: The name is unknown.
    """
    if name not in SEGMENTATION_BACKBONES:
        raise ValueError(unknown("segmentation backbone", name, SEGMENTATION_BACKBONES))
    return SEGMENTATION_BACKBONES[name]
