"""LeNet as digit adaptation uses it (Long et al., 2018): two convolutions of 5x5 and a hidden layer.

The last pooling has a fixed output of 4x4. For 28x28 images that is the published 2x2 max-pooling; other sizes fit too.
"""

from __future__ import annotations

from torch import nn

SMALLEST = 14
"""The side of the smallest image that both convolutions can read."""


def lenet(in_channels: int = 1, width: int = 500, *, dropout: float = 0.5) -> nn.Sequential:
    """Images (n, in_channels, h, w), h and w at least 14, to features (n, width).

    Args:
        in_channels: channels of the images.
        width: of the hidden layer, which is the bottleneck.
        dropout: of the second convolution's channels and of the hidden layer.
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
        nn.Dropout(dropout),
    )
