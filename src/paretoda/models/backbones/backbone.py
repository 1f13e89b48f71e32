"""Description of a backbone, wherever it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from paretoda.errors import BackboneError

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Backbone:
    """Description of a network from images to features, before it is built.

    Args:
        build: Function from the number of channels to a network from images to features (n, width), with random
            weights.
        width: Width of the features; 0: it is measured (`measure_width`).
        smallest: Side of the smallest image that it reads.
        mean: Mean of each channel, for images in 0..1; one number stands for all channels.
        std: Standard deviation of each channel, in the same form.
        photos: Whether it is made for photographs of about 224 pixels, usually with weights from ImageNet.
        size: Default side of the images; None: their own, 224 at most.
        multiple: Number that the sides must be multiples of.
        channels: Number of channels of the images; None: that of the data.
        facts: JSON values that rebuild an external network, without its origin.
        load: Function that puts weights into what `build` made: those of a file, or the published ones for None; None
            if the name has no weights of its own.
    """

    build: Callable[[int], nn.Module]
    width: int
    smallest: int = 1
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    photos: bool = False
    size: int | None = None
    multiple: int = 1
    channels: int | None = None
    facts: Mapping[str, Any] | None = None
    load: Callable[[nn.Module, str | None], None] | None = None


class ResidualBlock(nn.Module):
    """Convolutions with a shortcut, from one tensor to one; activation checkpointing works block by block."""


class ExternalBackbone(nn.Module):
    """Network from outside this package, with the facts that rebuild it.

    Args:
        network: Network from images to features (n, width).
        facts: Its JSON values, including the width.
    """

    def __init__(self, network: nn.Module, facts: Mapping[str, Any]) -> None:
        super().__init__()
        self.network = network
        self.facts = dict(facts)

    def forward(self, images: Tensor) -> Tensor:
        """Map images (n, channels, h, w) to features (n, width)."""
        features: Tensor = self.network(images)
        return features


def measure_width(name: str, network: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Return the width of the features that the network computes for one grey image.

    Args:
        name: Name of the network, for the error message.
        network: Network on any device; on "meta" it takes no memory.
        input_shape: Shape of one sample, (channels, h, w).

    Raises:
        BackboneError: The network cannot read such images, or does not return features (n, width).

    Examples:
        >>> measure_width("mine", nn.Sequential(nn.Flatten(), nn.Linear(48, 7)), (3, 4, 4))
        7
    """
    first = next(network.parameters(), None)
    image = torch.zeros(1, *input_shape, device="cpu" if first is None else first.device)
    try:
        with torch.no_grad():
            features = network.eval()(image)
    except Exception as error:  # a network may raise anything for a size that it was not made for
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        size = f"{input_shape[2]}x{input_shape[1]}"
        raise BackboneError(
            f"{name} cannot read images of {size} pixels and {input_shape[0]} channels ({reason}); "
            "give another --image-size"
        ) from error
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != 1 or not features.shape[1]:
        found = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise BackboneError(f"{name} must give features (n, width) for n images; for one image it gave {found}")
    return int(features.shape[1])
