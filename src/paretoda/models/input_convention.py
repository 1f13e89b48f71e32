"""What a published file of weights expects of an image: order of the channels, range, mean and deviation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InputConvention:
    """The network reads (scale · image - mean) / std, with the channels turned around first where `bgr` says so.

    Args:
        mean: of each channel, in the order that the network reads.
        std: likewise.
        scale: factor of the values 0..255.
        bgr: the network reads blue, green, red; images are stored as red, green, blue.
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    scale: float
    bgr: bool


INPUT_CONVENTIONS: dict[str, InputConvention] = {
    "caffe": InputConvention((104.00698793, 116.66876762, 122.67891434), (1.0, 1.0, 1.0), 1.0, True),
    "torchvision": InputConvention((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), 1 / 255, False),
}
"""Name -> what it expects: "caffe" for files with "Scale." names and what was trained from them, else "torchvision"."""
