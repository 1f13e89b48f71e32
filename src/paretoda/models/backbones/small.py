"""Small networks: a CNN and LeNet for images, a multilayer perceptron for feature vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import nn

from paretoda.models.dropout import Dropout

_GRID = 2
SMALLEST = 14
"""Side of the smallest image that both convolutions can read."""


def cnn_width(widths: Sequence[int] = (32, 64, 128)) -> int:
    """Number of features that `cnn` returns: the last width times the number of cells of the 2x2 grid."""
    return widths[-1] * _GRID**2


def cnn(in_channels: int = 3, widths: Sequence[int] = (32, 64, 128)) -> nn.Sequential:
    """Build a CNN from images (n, in_channels, h, w), h and w from 2 ** len(widths) on, to features (n, 4 widths[-1]).

    Every stage is a 3x3 convolution, BatchNorm, ReLU and a halving of the resolution. The features are averaged over a
    grid of 2x2 cells rather than over the whole image: the position of a stroke distinguishes a 6 from a 9.

    Args:
        in_channels: Number of channels of the images.
        widths: Numbers of channels of the stages.
    """
    layers: list[nn.Module] = []
    for before, after in zip((in_channels, *widths[:-1]), widths, strict=True):
        layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(_GRID), nn.Flatten())


def lenet(in_channels: int = 1, width: int = 500, *, dropout: float = 0.5) -> nn.Sequential:
    """Build a network from images (n, in_channels, h, w), h and w at least 14, to features (n, width).

    Args:
        in_channels: Number of channels of the images.
        width: Width of the hidden layer, which is the bottleneck.
        dropout: Share that dropout leaves out of the second convolution's channels and of the hidden layer.
    """
    return nn.Sequential(
        nn.Conv2d(in_channels, 20, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(20, 50, 5),
        nn.Dropout2d(dropout),
        nn.AdaptiveMaxPool2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(800, width),
        nn.ReLU(),
        Dropout(dropout),
    )


def mlp(
    inputs: int,
    widths: Sequence[int] = (512, 256),
    *,
    norm: Literal["batch", "none"] = "batch",
    dropout: float = 0.0,
) -> nn.Sequential:
    """Build linear layers, each followed by BatchNorm, ReLU and dropout: (n, inputs) to (n, widths[-1]).

    Args:
        inputs: Width of the data.
        widths: Widths of the layers; the last is the width of the features.
        norm: "batch": BatchNorm after every linear layer; "none": no normalisation.
        dropout: Probability that a feature is dropped in training; 0 leaves the layer out.

    Raises:
        ValueError: There is no layer, or the norm is unknown.

    Examples:
        >>> import torch
        >>> mlp(20, (16, 8))(torch.randn(5, 20)).shape
        torch.Size([5, 8])
    """
    if not widths:
        raise ValueError("an MLP needs at least one layer, widths is empty")
    if norm not in ("batch", "none"):
        raise ValueError(f"norm must be 'batch' or 'none', got {norm!r}")
    layers: list[nn.Module] = []
    for before, after in zip((inputs, *widths[:-1]), widths, strict=True):
        layers.append(nn.Linear(before, after))
        if norm == "batch":
            layers.append(nn.BatchNorm1d(after))
        layers.append(nn.ReLU())
        if dropout > 0:
            layers.append(Dropout(dropout))
    return nn.Sequential(*layers)
