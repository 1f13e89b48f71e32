"""A discriminator of maps tells source regions (positive scores) from target regions (negative scores)."""

from __future__ import annotations

from torch import Tensor, nn

from paretoda.objectives.normalisation import Statistics


class MapDiscriminator(nn.Module):
    """4x4 convolutions with stride 2, each but the last with LeakyReLU behind it and twice as wide as the one before.

    Without normalisation, as both domains come apart. Every layer halves the map, rounded down.

    Args:
        classes: channels K of the maps.
        layers: how many convolutions; 5 in AdaSegNet.
        width: channels behind the first.
    """

    def __init__(self, classes: int, layers: int, width: int) -> None:
        super().__init__()
        if layers < 1 or width < 1:
            raise ValueError(f"layers and width must be 1 or more, got {layers} and {width}")
        channels = [classes, *(width * 2**index for index in range(layers - 1)), 1]
        self.layers = nn.ModuleList(
            nn.Conv2d(channels[index], channels[index + 1], 4, stride=2, padding=1) for index in range(layers)
        )

    def forward(self, maps: Tensor, statistics: Statistics = "batch") -> Tensor:  # noqa: ARG002 - it has no BatchNorm
        """Scores of the maps (n, K, h, w), shape (n, 1, h / 2^layers, w / 2^layers)."""
        smallest = 2 ** len(self.layers)
        if min(maps.shape[-2:]) < smallest:
            size = "x".join(map(str, maps.shape[-2:]))
            raise ValueError(f"{len(self.layers)} layers need maps of {smallest} pixels or more, got {size}: use fewer")
        for layer in self.layers[:-1]:
            maps = nn.functional.leaky_relu(layer(maps), 0.2)
        scores: Tensor = self.layers[-1](maps)
        return scores
