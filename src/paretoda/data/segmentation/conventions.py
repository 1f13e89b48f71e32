"""What numbers a segmentation network takes for pixels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from paretoda.data.transforms import IMAGENET


@dataclass(frozen=True)
class Convention:
    """What numbers a network's pixels are: (scale * pixel - mean) / std.

    Args:
        mean: per channel, in the network's order of channels.
        std: per channel.
        scale: of pixels in 0..255.
        bgr: blue comes first.
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    scale: float
    bgr: bool


CONVENTIONS = {
    "torchvision": Convention(*IMAGENET, 1 / 255, bgr=False),
    "caffe": Convention((104.00698793, 116.66876762, 122.67891434), (1.0, 1.0, 1.0), 1.0, bgr=True),
    "efficientnet": Convention((127 / 255,) * 3, (128 / 255,) * 3, 1 / 255, bgr=False),
}
"""Of the networks that pretrained weights are for; caffe's is that of DeepLab-v2 in the literature."""


def convention_from_json(given: Mapping[str, Any]) -> Convention:
    """What `asdict` made of a convention, as one again; a ValueError where its numbers make no image."""
    red, green, blue = map(float, given["mean"])
    one, two, three = map(float, given["std"])
    scale = float(given["scale"])
    if not all(map(isfinite, (red, green, blue, scale))) or not all(isfinite(s) and s > 0 for s in (one, two, three)):
        raise ValueError("images are normalised with finite means and with deviations above 0")
    return Convention((red, green, blue), (one, two, three), scale, bool(given["bgr"]))
