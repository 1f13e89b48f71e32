"""What is known of a backbone, wherever it comes from."""

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
    """A network from images to features, before it is built.

    Args:
        build: The number of channels -> a network from images to features (n, width), with random weights.
        width: Of the features; 0: it is measured (`measured_width`).
        smallest: Side of the smallest image that it reads.
        mean: Of each channel, for images in 0..1; one number stands for all channels.
        std: Likewise.
        photos: Made for photographs of about 224 pixels, usually with weights from ImageNet.
        size: Side of the images where nobody says another; None: their own, 224 at most.
        multiple: Sides are multiples of it.
        channels: Of the images; None: as the data have them.
        facts: JSON values that rebuild a network from outside of this package, without where it came from.
        load: Puts weights into what `build` made: those of a file, or its published ones where that is None; None
            where the name has none of its own.
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


class ExternalBackbone(nn.Module):
    """A network from outside of this package, with what rebuilds it.

    Args:
        network: From images to features (n, width).
        facts: Its JSON values, the width among them.
    """

    def __init__(self, network: nn.Module, facts: Mapping[str, Any]) -> None:
        super().__init__()
        self.network = network
        self.facts = dict(facts)

    def forward(self, images: Tensor) -> Tensor:
        """Images (n, channels, h, w) to features (n, width)."""
        features: Tensor = self.network(images)
        return features


def measure_width(name: str, network: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Width of the features that the network makes of one grey image, or a BackboneError.

    Args:
        name: Name of the network, for the error message.
        network: On any device; on "meta" it takes no memory.
        input_shape: Shape of one sample, (channels, h, w).
    """
    first = next(network.parameters(), None)
    image = torch.zeros(1, *input_shape, device="cpu" if first is None else first.device)
    try:
        with torch.no_grad():
            features = network.eval()(image)
    except Exception as error:  # whatever another's network does with a size that it was not made for
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
