"""A small convolutional network with BatchNorm, for images of 16 to 64 pixels and any number of channels."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

_GRID = 2


def cnn_width(widths: Sequence[int] = (32, 64, 128)) -> int:
    """The number of features that `cnn` returns: the last width, times the 2x2 grid of places."""
    return widths[-1] * _GRID**2


def cnn(in_channels: int = 3, widths: Sequence[int] = (32, 64, 128)) -> nn.Sequential:
    """Images (n, in_channels, h, w), h and w at least 2 ** len(widths), to features (n, 4 widths[-1]).

    Every stage is a 3x3 convolution, BatchNorm, ReLU and a halving of the resolution. The features are averaged over
    a grid of 2x2 places rather than over the whole image: where a stroke stands tells a 6 from a 9.

    Args:
        in_channels: channels of the images.
        widths: channels of the stages.
    """
    layers: list[nn.Module] = []
    for before, after in zip((in_channels, *widths[:-1]), widths, strict=True):
        layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(_GRID), nn.Flatten())
