"""Small segmentation backbones for CPUs: a dilated ResNet, and the mixed stages of EfficientNet-Lite0."""

from __future__ import annotations

from math import gcd
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, relu6

from paretoda.models.backbones.backbone import ResidualBlock
from paretoda.models.backbones.efficientnet import efficientnet_lite0
from paretoda.models.batchnorm import batch_norms
from paretoda.models.weights import load_weights

_GROUPS = 8
_QUARTER, _EIGHTH, _SIXTEENTH = 2, 4, 10
"""Indices of the last blocks of the stages whose maps are used."""
_CHANNELS = (24, 40, 112)
"""Numbers of channels of these maps."""
_BEHIND = (*(f"_blocks.{i}." for i in range(11, 16)), "_conv_head.", "_bn1.", "_fc.")
"""Prefixes of the names of published tensors behind these stages."""
_MOMENTUM = 0.1
"""Momentum of BatchNorm: with the published 0.01 the statistics would still be ImageNet's after a hundred steps."""


def _conv(inputs: int, outputs: int, stride: int = 1, dilation: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride, padding=dilation, dilation=dilation, bias=False)


def _norm(channels: int, norm: Literal["batch", "group"]) -> nn.Module:
    return nn.BatchNorm2d(channels) if norm == "batch" else nn.GroupNorm(gcd(_GROUPS, channels), channels)


def _projection(inputs: int, outputs: int, norm: Literal["batch", "group"]) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), _norm(outputs, norm))


class DilatedBlock(ResidualBlock):
    """Two dilated 3x3 convolutions and a shortcut: (n, inputs, h, w) to (n, width, h, w).

    Args:
        inputs: Number of input channels.
        width: Number of output channels.
        dilation: Dilation of both convolutions.
        norm: "batch" or "group" normalisation behind each convolution.
    """

    def __init__(self, inputs: int, width: int, dilation: int, norm: Literal["batch", "group"]) -> None:
        super().__init__()
        self.conv1 = _conv(inputs, width, dilation=dilation)
        self.norm1 = _norm(width, norm)
        self.conv2 = _conv(width, width, dilation=dilation)
        self.norm2 = _norm(width, norm)
        self.shortcut = None if inputs == width else _projection(inputs, width, norm)

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(residual + shortcut)."""
        shortcut = x if self.shortcut is None else self.shortcut(x)
        x = self.norm1(self.conv1(x)).relu_()
        x = self.norm2(self.conv2(x))
        return x.add_(shortcut).relu_()


class DilatedBody(nn.Module):
    """Body from images (n, 3, h, w) to two maps of `channels` channels at a quarter of the resolution, rounded up.

    Args:
        channels: Number of channels of the last two blocks, a multiple of 4; the stem has a quarter and the first block
            half of them.
        norm: "batch", or "group" for batches of one or two images.

    Raises:
        ValueError: The number of channels is not a multiple of 4, or the norm is unknown.
    """

    def __init__(self, channels: int = 64, norm: Literal["batch", "group"] = "batch") -> None:
        super().__init__()
        if channels < 4 or channels % 4:
            raise ValueError(f"the dilated network's channels must be a multiple of 4, got {channels}")
        if norm not in ("batch", "group"):
            raise ValueError(f"norm must be 'batch' or 'group', got {norm!r}")
        self.widths = (channels, channels)
        stem, half = channels // 4, channels // 2
        self.stem = nn.Sequential(
            *(_conv(3, stem, stride=2), _norm(stem, norm), nn.ReLU(inplace=True)),
            *(_conv(stem, half, stride=2), _norm(half, norm), nn.ReLU(inplace=True)),
        )
        self.block1 = DilatedBlock(half, half, 1, norm)
        self.block2 = DilatedBlock(half, channels, 2, norm)
        self.block3 = DilatedBlock(channels, channels, 4, norm)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return the maps of the last two blocks, each (n, channels, h/4, w/4)."""
        lower = self.block2(self.block1(self.stem(images)))
        return lower, self.block3(lower)


class Trunk(nn.Module):
    """Stem and first five stages: images to the maps at a quarter, an eighth and a sixteenth of the resolution."""

    def __init__(self) -> None:
        super().__init__()
        whole = efficientnet_lite0()
        self._conv_stem, self._bn0 = whole._conv_stem, whole._bn0
        self._blocks = whole._blocks[: _SIXTEENTH + 1]
        for layer in batch_norms(self):
            layer.momentum = _MOMENTUM

    def first_half(self) -> nn.ModuleList:
        """Return all layers before the first of the three maps."""
        return nn.ModuleList([self._conv_stem, self._bn0, *self._blocks[: _QUARTER + 1]])

    def forward(self, images: Tensor) -> list[Tensor]:
        """Return the three maps, of 24, 40 and 112 channels."""
        x: Tensor = relu6(self._bn0(self._conv_stem(images)))
        maps: list[Tensor] = []
        for i, block in enumerate(self._blocks):
            x = block(x)
            if i in (_QUARTER, _EIGHTH, _SIXTEENTH):
                maps.append(x)
        return maps


class HypercolumnBody(nn.Module):
    """Body from images (n, 3, h, w) to two maps of `channels` channels at a quarter of the resolution, rounded up.

    Args:
        channels: Number of channels of each map.
    """

    def __init__(self, channels: int = 64) -> None:
        super().__init__()
        self.trunk = Trunk()
        self.lower = _mixing(sum(_CHANNELS[:2]), channels)
        self.last = _mixing(channels + _CHANNELS[2], channels)

    def load(self, path: Path) -> None:
        """Load published weights of EfficientNet-Lite0 into the trunk and freeze its first half.

        Args:
            path: Local file; tensors behind the stages of the trunk are not used.
        """
        load_weights(self.trunk, path, _BEHIND)
        self.trunk.first_half().requires_grad_(False)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return a mixture of the maps of the first two stages, and a mixture of it and the third map."""
        fine, *coarse = self.trunk(images)
        eighth, sixteenth = (interpolate(x, fine.shape[-2:], mode="bilinear", align_corners=True) for x in coarse)
        lower = self.lower(torch.cat([fine, eighth], dim=1))
        return lower, self.last(torch.cat([lower, sixteenth], dim=1))


def _mixing(inputs: int, outputs: int) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, 1, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))
