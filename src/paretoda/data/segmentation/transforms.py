"""Transforms of images and their label maps to tensors of one size; stored with the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from operator import index
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from paretoda.data.batching import draw_per_sample
from paretoda.data.samples import Image8
from paretoda.data.segmentation.samples import Map8, Size, resize_map, to_rgb
from paretoda.data.settings import LONGEST
from paretoda.data.transforms import IMAGENET
from paretoda.errors import DataError
from paretoda.types import IGNORE

Read = TypeVar("Read")


@dataclass(frozen=True)
class Convention:
    """Pixel normalisation that a network expects: (scale * pixel - mean) / std.

    Args:
        mean: Mean per channel, in the network's order of channels.
        std: Deviation per channel.
        scale: Factor of pixels in 0..255.
        bgr: Whether blue comes first.
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
"""Conventions of pretrained networks; "caffe" is that of DeepLab-v2 in the literature."""


def convention_from_json(given: Mapping[str, Any]) -> Convention:
    """Return the convention that `asdict` was taken from.

    Raises:
        ValueError: Its numbers are not finite, or a deviation is not positive.
    """
    red, green, blue = map(float, given["mean"])
    one, two, three = map(float, given["std"])
    scale = float(given["scale"])
    if not all(map(isfinite, (red, green, blue, scale))) or not all(isfinite(s) and s > 0 for s in (one, two, three)):
        raise ValueError("images are normalised with finite means and with deviations above 0")
    return Convention((red, green, blue), (one, two, three), scale, bool(given["bgr"]))


@dataclass(frozen=True)
class SceneTransform:
    """Resizes images, in training mirrors, scales and crops them where asked, and normalises them.

    Args:
        size: Width and height.
        convention: Pixel normalisation of the network.
        flip: Whether half of the training images are mirrored.
        scales: Least and largest random factor of the size in training; None keeps the size.
        crop: Width and height of a random rectangle in training; None with `scales` cuts to `size`. What lies outside
            the image has the mean colour and the label 255.

    Raises:
        DataError: A size or a factor is out of its range.
    """

    size: Size
    convention: Convention = CONVENTIONS["torchvision"]
    flip: bool = False
    scales: tuple[float, float] | None = None
    crop: Size | None = None

    def __post_init__(self) -> None:
        for side in (*self.size, *(self.crop or ())):
            if not 1 <= side <= LONGEST:
                raise DataError(f"images cannot be {side} pixels wide or high; give (width, height) of 1 to {LONGEST}")
        if self.scales is not None and not 0 < self.scales[0] <= self.scales[1]:
            raise DataError(f"the random scales are {self.scales}; give (least, largest), both above 0")

    @property
    def trained_size(self) -> Size:
        """Width and height in training."""
        return self.crop or self.size

    def prepare(self, images: Sequence[Image8] | NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the resized images, the part without randomness, shape (n, h, w, 3)."""
        return np.stack([_resize(to_rgb(image), self.size) for image in images])

    def prepare_labels(self, labels: Sequence[Map8] | NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the label maps at the same size, shape (n, h, w)."""
        return np.stack([resize_map(label, self.size) for label in labels])

    def augment(
        self,
        images: Sequence[Image8] | NDArray[np.uint8],
        labels: Sequence[Map8] | NDArray[np.uint8] | None,
        generator: torch.Generator,
    ) -> tuple[Tensor, Tensor | None]:
        """Return augmented images that are not normalised, and their labels.

        Returns:
            Float images in 0..255, RGB, shape (n, 3, h, w), and int64 labels, shape (n, h, w), or None.
        """
        pixels = self.prepare(images)
        maps = np.zeros(pixels.shape[:3], np.uint8) if labels is None else self.prepare_labels(labels)
        draws = draw_per_sample((len(pixels), 4), 0, generator, torch.float64).tolist()
        changed = [self._augment_scene(*scene) for scene in zip(pixels, maps, draws, strict=True)]
        return _to_tensor([image for image, _ in changed]), (
            None if labels is None else torch.from_numpy(np.stack([label for _, label in changed])).long()
        )

    def train(
        self,
        images: Sequence[Image8] | NDArray[np.uint8],
        labels: Sequence[Map8] | NDArray[np.uint8] | None,
        generator: torch.Generator,
    ) -> tuple[Tensor, Tensor | None]:
        """Return augmented and normalised images, shape (n, 3, h, w), and int64 labels, shape (n, h, w).

        Args:
            images: n images of any size.
            labels: Their label maps, or None.
            generator: Source of all randomness.
        """
        pixels, maps = self.augment(images, labels, generator)
        return self.normalise(pixels), maps

    def evaluate(self, raw: Sequence[Image8] | NDArray[np.uint8]) -> Tensor:
        """Return normalised images without randomness, shape (n, 3, h, w)."""
        return self.normalise(_to_tensor(self.prepare(raw)))

    def pixels(self, raw: Sequence[Image8] | NDArray[np.uint8]) -> Tensor:
        """Return images without randomness that are not normalised: 0..255, RGB, shape (n, 3, h, w)."""
        return _to_tensor(self.prepare(raw))

    def normalise(self, pixels: Tensor) -> Tensor:
        """Convert pixels from 0..255, RGB, to the network's convention, shape (n, 3, h, w)."""
        ordered = pixels.flip(1) if self.convention.bgr else pixels
        mean, std = (torch.tensor(row).view(3, 1, 1) for row in (self.convention.mean, self.convention.std))
        return (ordered * self.convention.scale - mean) / std

    def to_json(self) -> dict[str, Any]:
        """Return the fields."""
        return {"kind": "scenes", **asdict(self)}

    def tensors(self) -> dict[str, Tensor]:
        """Return nothing: all parameters are in `to_json`."""
        return {}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> SceneTransform:
        """Return the transform that `to_json` was taken from, also after it was a JSON file.

        Raises:
            DataError: The data are damaged.
        """
        try:
            scales, crop = data["scales"], data["crop"]
            width, height = map(index, data["size"])
            if data["kind"] != "scenes":
                raise KeyError("kind")
            return SceneTransform(
                (width, height),
                convention_from_json(data["convention"]),
                bool(data["flip"]),
                _parse_two(float, scales) if scales else None,
                _parse_two(index, crop) if crop else None,
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"the model's transform cannot be read ({error!r}); its files are damaged") from error

    def _augment_scene(self, image: Image8, label: Map8, draws: Sequence[float]) -> tuple[Image8, Map8]:
        if self.scales is not None:
            factor = self.scales[0] + (self.scales[1] - self.scales[0]) * draws[0]
            size = (max(1, round(self.size[0] * factor)), max(1, round(self.size[1] * factor)))
            image, label = _resize(image, size), resize_map(label, size)
        if self.flip and draws[1] < 0.5:
            image, label = image[:, ::-1], label[:, ::-1]
        return self._crop_scene(image, label, draws[2:])

    def _crop_scene(self, image: Image8, label: Map8, draws: Sequence[float]) -> tuple[Image8, Map8]:
        width, height = self.trained_size
        if label.shape == (height, width):
            return image, label
        columns, into_columns = _overlap(label.shape[1], width, draws[0])
        rows, into_rows = _overlap(label.shape[0], height, draws[1])
        mean = self.convention.mean[::-1] if self.convention.bgr else self.convention.mean
        pixels = np.empty((height, width, 3), np.uint8)
        pixels[:] = np.rint(np.array(mean) / self.convention.scale)
        maps = np.full((height, width), IGNORE, np.uint8)
        pixels[into_rows, into_columns] = image[rows, columns]
        maps[into_rows, into_columns] = label[rows, columns]
        return pixels, maps


def _overlap(have: int, want: int, draw: float) -> tuple[slice, slice]:
    # A random part of the longer one, which is as long as the shorter one.
    start = min(int(draw * (abs(have - want) + 1)), abs(have - want))
    part, whole = slice(start, start + min(have, want)), slice(0, min(have, want))
    return (part, whole) if have > want else (whole, part)


def _resize(image: Image8, size: Size) -> Image8:
    if (image.shape[1], image.shape[0]) == size:
        return image
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BICUBIC))


def _to_tensor(images: Sequence[Image8] | NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(np.stack(list(images)))).permute(0, 3, 1, 2).contiguous().float()


def _parse_two(read: Callable[[Any], Read], given: Any) -> tuple[Read, Read]:
    first, second = map(read, given)
    return first, second
