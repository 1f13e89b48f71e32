"""A small dilated ResNet for CPUs: output stride 4, 155 thousand parameters at the default width.

It is not from a paper: two strided convolutions, then three residual blocks with dilations 1, 2 and 4 instead of
further strides.
"""

from __future__ import annotations

from math import gcd
from typing import Literal

from torch import Tensor, nn

from paretoda.models.backbones.backbone import ResidualBlock

_GROUPS = 8


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
