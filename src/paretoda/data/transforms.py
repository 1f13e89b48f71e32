"""Transforms from images to tensors of one size, with augmentation and ten crops; stored with the model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from operator import index
from typing import Any, Protocol, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from paretoda.data.batching import draw_per_sample
from paretoda.data.samples import Image8, Raw
from paretoda.data.scaling import FeatureTransform
from paretoda.data.settings import Augment
from paretoda.errors import DataError
from paretoda.io.limits import LONGEST_SIDE

CROPS = 10
_RATIO = 4 / 3
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Mean and deviation of ImageNet's pixels in 0..1."""


def ten_crops(images: Tensor, size: int) -> Tensor:
    """Return ten crops, shape (n, 10, c, size, size): the four corners and the middle, then the same five mirrored.

    The order is upper left, upper right, lower left, lower right, middle.

    Args:
        images: Images, shape (n, c, r, r), r at least `size`.
        size: Side of a crop.
    """
    last, middle = images.shape[-1] - size, (images.shape[-1] - size) // 2
    places = ((0, 0), (0, last), (last, 0), (last, last), (middle, middle))
    views = [images[..., top : top + size, left : left + size] for top, left in places]
    return torch.stack([*views, *(view.flip(-1) for view in views)], dim=1)


def random_crops(
    images: Tensor, size: int, scale: tuple[float, float], flip: bool, generator: torch.Generator
) -> Tensor:
    """Cut a rectangle of a random share of the area out of each image, mirror some, and resize to a square.

    Args:
        images: Images, shape (n, c, s, s), values 0..1.
        size: Side of the result.
        scale: Least and largest share of the area; the ratio of the sides lies between 3/4 and 4/3.
        flip: Whether half of the images are mirrored.
        generator: Source of all randomness.
    """
    n = len(images)
    chance = draw_per_sample((5, n), 1, generator)
    area = scale[0] + (scale[1] - scale[0]) * chance[0]
    ratio = torch.exp((2 * chance[1] - 1) * math.log(_RATIO))
    width = (area * ratio).sqrt().clamp(max=1)
    height = (area / ratio).sqrt().clamp(max=1)
    mirror = torch.where(chance[4] < 0.5, -1.0, 1.0) if flip else torch.ones(n)
    theta = torch.zeros((n, 2, 3))
    theta[:, 0, 0] = width * mirror
    theta[:, 1, 1] = height
    theta[:, 0, 2] = (2 * chance[2] - 1) * (1 - width)
    theta[:, 1, 2] = (2 * chance[3] - 1) * (1 - height)
    grid = affine_grid(theta, [n, images.shape[1], size, size], align_corners=False)
    return grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)


def random_mirrors(images: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror half of the images, drawn at random, left to right.

    Args:
        images: Images, shape (n, c, h, w).
        generator: Source of all randomness.
    """
    mirrored = draw_per_sample((len(images),), 0, generator) < 0.5
    return torch.where(mirrored.view(-1, 1, 1, 1), images.flip(-1), images)


def colour_jitter(images: Tensor, strength: float, generator: torch.Generator) -> Tensor:
    """Multiply brightness, contrast and saturation of each image by factors from 1 - strength to 1 + strength.

    Args:
        images: Images, shape (n, c, h, w), values 0..1.
        strength: Strength; 0 changes nothing.
        generator: Source of all randomness.
    """
    factors = 1 + strength * (2 * draw_per_sample((3, len(images), 1, 1, 1), 1, generator) - 1)
    images = (images * factors[0]).clamp_(0, 1)
    images = blend(images, grey(images).mean(dim=(1, 2, 3), keepdim=True), factors[1])
    return blend(images, grey(images), factors[2])


def grey(images: Tensor) -> Tensor:
    """Luminance, shape (n, 1, h, w)."""
    if images.shape[1] == 1:
        return images
    return 0.299 * images[:, :1] + 0.587 * images[:, 1:2] + 0.114 * images[:, 2:]


def blend(images: Tensor, towards: Tensor, factor: Tensor) -> Tensor:
    """Mix of two images: `towards` at factor 0, `images` at 1, beyond them above 1; values stay in 0..1."""
    return torch.lerp(towards, images, factor).clamp_(0, 1)


class Transform(Protocol):
    """Turns raw samples into a batch of tensors."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one transformed sample."""
        ...

    def train(self, raw: Raw, generator: torch.Generator) -> Tensor:
        """Return the samples with augmentation, drawn from the generator only."""
        ...

    def evaluate(self, raw: Raw) -> Tensor:
        """Return the samples without any randomness."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return plain data for model.json."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors, which are too large for model.json."""
        ...


@dataclass(frozen=True)
class ImageTransform:
    """Resizes images to a square, crops and normalises them.

    The augmentation "flip" takes the middle and mirrors half of the images, as on VisDA-2017; "light" crops 70-100 % of
    the area and never mirrors; "standard" crops 8-100 % and mirrors, as the other benchmarks do; "strong" also changes
    colours. With any of them images are resized to 8/7 of the size first, and evaluation takes the middle. With "none"
    they are resized to the size itself.

    Args:
        size: Side of the result.
        channels: Number of channels, 1 or 3; other images are converted.
        mean: Mean per channel, of pixels in 0..1.
        std: Deviation per channel.
        augment: Augmentation in training.

    Raises:
        DataError: A value is out of its range.
    """

    size: int
    channels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    augment: Augment = "none"

    def __post_init__(self) -> None:
        if not len(self.mean) == len(self.std) == self.channels:
            raise DataError(f"images of {self.channels} channels need as many means and deviations to be normalised")
        if not (self.channels in (1, 3) and 1 <= self.size <= LONGEST_SIDE and self.augment in get_args(Augment)):
            raise DataError(
                f"images of {self.channels} channels, {self.size} pixels and augmentation {self.augment!r} are unknown"
            )
        if not (all(map(isfinite, self.mean)) and all(isfinite(std) and std > 0 for std in self.std)):
            raise DataError("images are normalised with finite means and with deviations above 0")

    @property
    def resized(self) -> int:
        """Side of the square before cropping."""
        return self.size if self.augment == "none" else round(self.size * 8 / 7)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one transformed image."""
        return self.channels, self.size, self.size

    def prepare(self, raw: Raw) -> NDArray[np.uint8]:
        """Return the resized images, the part without randomness: shape (n, r, r[, 3]), r = `resized`.

        Images that are prepared already are returned unchanged.
        """
        if isinstance(raw, np.ndarray):
            raw = _convert_channels(raw, self.channels)
            if raw.shape[1:3] == (self.resized, self.resized):
                return raw
        return np.stack(
            [_resize_to_square(_convert_channels(image[None], self.channels)[0], self.resized) for image in raw]
        )

    def train(self, raw: Raw, generator: torch.Generator) -> Tensor:
        """Return augmented images, shape (n, channels, size, size)."""
        images = _to_unit_range(self._to_tensor(raw))
        if self.augment == "none":
            return self._normalise(images)
        if self.augment == "flip":
            return self._normalise(random_mirrors(self._crop_middle(images), generator))
        light = self.augment == "light"
        images = random_crops(images, self.size, (0.7 if light else 0.08, 1.0), not light, generator)
        if self.augment == "strong":
            images = colour_jitter(images, 0.4, generator)
        return self._normalise(images)

    def evaluate(self, raw: Raw) -> Tensor:
        """Return the middle of each image, shape (n, channels, size, size)."""
        return self._normalise(_to_unit_range(self._crop_middle(self._to_tensor(raw))))

    def evaluate_crops(self, raw: Raw) -> Tensor:
        """Return ten views of each image, one after the other, shape (10 n, channels, size, size).

        Raises:
            DataError: The images are not larger than their crops.
        """
        if self.resized == self.size:
            raise DataError("these images are not resized to more than their crops: ten would be two; take 1 crop")
        return self._normalise(_to_unit_range(ten_crops(self._to_tensor(raw), self.size).flatten(0, 1)))

    def to_json(self) -> dict[str, Any]:
        """Return the fields."""
        return {"kind": "images", **asdict(self)}

    def tensors(self) -> dict[str, Tensor]:
        """Return nothing: all parameters are in `to_json`."""
        return {}

    def _crop_middle(self, images: Tensor) -> Tensor:
        start = (self.resized - self.size) // 2
        return images[:, :, start : start + self.size, start : start + self.size]

    def _to_tensor(self, raw: Raw) -> Tensor:
        images = torch.from_numpy(np.ascontiguousarray(self.prepare(raw)))
        return images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2)

    def _normalise(self, images: Tensor) -> Tensor:
        # In place: the images belong to this batch only.
        return images.sub_(torch.tensor(self.mean).view(-1, 1, 1)).div_(torch.tensor(self.std).view(-1, 1, 1))


def transform_from_json(data: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Transform:
    """Return the transform that `to_json` and `tensors` were taken from.

    Args:
        data: Result of `to_json`.
        tensors: Result of `tensors`.

    Raises:
        DataError: The data are damaged or from a newer version.
    """
    fields = dict(data)
    try:
        kind = fields.pop("kind")
        if kind == "features":
            unit_rows = fields.get("unit_rows", False)
            transform = FeatureTransform(tensors["mean"], tensors["std"], tensors.get("axes"), unit_rows is True)
            shapes = [(fields["width"],)] * 2 + [(fields["width"], fields.get("components"))]
            stored = [transform.mean, transform.std, *([] if transform.axes is None else [transform.axes])]
            fits = all(t.dtype == torch.float32 and t.shape == shape for t, shape in zip(stored, shapes, strict=False))
            known = isinstance(unit_rows, bool) and (transform.axes is None) == ("components" not in fields)
            if fits and known:
                return transform
        if kind == "images":
            numbers = {name: tuple(float(number) for number in fields[name]) for name in ("mean", "std")}
            whole_numbers = {name: index(fields[name]) for name in ("size", "channels")}
            return ImageTransform(**{**fields, **numbers, **whole_numbers})
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the model's transform cannot be read ({error!r}); its files are damaged") from error
    raise DataError(f"the model's transform {dict(data)} cannot be read; its files are damaged or from a newer version")


def _convert_channels(images: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    # Pillow's integer formula for luminance, for many images at once.
    if images.ndim == 3 and channels == 3:
        return np.repeat(images[..., None], 3, axis=3)
    if images.ndim == 4 and channels == 1:
        sums = images @ np.array([19595, 38470, 7471], dtype=np.uint32) + np.uint32(0x8000)
        return (sums >> 16).astype(np.uint8)
    return images


def _to_unit_range(images: Tensor) -> Tensor:
    # Bytes are made contiguous before they become four times as many.
    return images.contiguous().float().div_(255)


def _resize_to_square(image: Image8, side: int) -> Image8:
    if image.shape[:2] == (side, side):
        return image
    return np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR))
