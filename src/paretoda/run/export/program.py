"""The exported program: preprocessing, networks and probabilities as one module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from paretoda.data.scaling import FeatureTransform
from paretoda.data.segmentation import SceneTransform
from paretoda.data.transforms import ImageTransform
from paretoda.errors import RunError
from paretoda.maps import resize_maps
from paretoda.models.backbones.resnet import RESNETS
from paretoda.run.directory.model_files import require_refiner
from paretoda.tasks.classification.predictor import Predictor
from paretoda.tasks.segmentation.predictor import ScenePredictor, log_refined_maps

_BITS = 2.0**22
Filter = Literal["bilinear", "bicubic"]


def _bilinear(distance: Tensor) -> Tensor:
    return (1 - distance.abs()).clamp(min=0)


def _bicubic(distance: Tensor) -> Tensor:
    x = distance.abs()  # Keys's cubic with a = -1/2
    near = (1.5 * x - 2.5) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * -0.5
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


_FILTERS: dict[Filter, tuple[Callable[[Tensor], Tensor], float]] = {
    "bilinear": (_bilinear, 1.0),
    "bicubic": (_bicubic, 2.0),
}
"""Name -> weight at a distance, and the distance from which on it is 0."""


def resampling_weights(places: int, size: int, kind: Filter) -> Tensor:
    """How much each of the pixels of a line counts for each new one, in units of 2^-22: shape (size, places).

    Args:
        places: pixels of the line; may be symbolic.
        size: pixels that are wanted.
        kind: of the filter.
    """
    weigh, reach = _FILTERS[kind]
    place = torch.arange(places, dtype=torch.float64)
    scale = torch.ones((), dtype=torch.float64) * places / size
    wider = scale.clamp(min=1)
    centre = ((torch.arange(size, dtype=torch.float64) + 0.5) * scale).unsqueeze(1)
    first = (centre - reach * wider + 0.5).trunc()
    last = (centre + reach * wider + 0.5).trunc()
    weights = weigh((place - centre + 0.5) * (1 / wider))
    weights = torch.where((place >= first) & (place < last), weights, torch.zeros_like(weights))
    weights = weights / weights.sum(1, keepdim=True) * _BITS
    return (weights + 0.5 * weights.sign()).trunc()


def resized(images: Tensor, size: tuple[int, int], kind: Filter, *, tall: bool) -> Tensor:
    """What `PIL.Image.resize` makes of the images: whole numbers in 0..255, float64.

    Args:
        images: whole numbers in 0..255, shape (n, c, h, w).
        size: width and height that are wanted, as Pillow has them.
        kind: of the filter.
        tall: whether a picture that loses much height is resized along its columns first.

    Returns:
        Shape (n, c, height, width).
    """
    (width, height), pixels = size, images.double()
    columns = resampling_weights(images.shape[3], width, kind).T
    rows = resampling_weights(images.shape[2], height, kind)
    usual = _rounded(rows @ _rounded(pixels @ columns))
    if not tall:
        return usual
    lost = torch.ones((), dtype=torch.float64) * images.shape[2] - height
    narrowed = torch.ones((), dtype=torch.float64) * images.shape[3] - width
    other = _rounded(_rounded(rows @ pixels) @ columns)
    return torch.where((lost > 0) & (lost > 2 * narrowed), other, usual)


def columns_may_come_first() -> bool:
    """Whether the Pillow that is installed resizes pictures that lose much height along their columns first."""
    picture = np.random.default_rng(0).integers(0, 2, (40, 10), dtype=np.uint8) * np.uint8(255)
    found = np.asarray(Image.fromarray(picture).resize((8, 8), Image.Resampling.BICUBIC))
    usual = resized(torch.from_numpy(picture)[None, None], (8, 8), "bicubic", tall=False)
    return not np.array_equal(found, usual[0, 0].numpy())


def _rounded(sums: Tensor) -> Tensor:
    return ((sums + _BITS / 2) / _BITS).floor().clamp(0, 255)


_GREY = (19595.0, 38470.0, 7471.0)
"""Pillow's weights of red, green and blue in grey, in units of 2^-16."""


class ZScores(nn.Module):
    """The `FeatureTransform` as a layer.

    Args:
        transform: of the run.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, transform: FeatureTransform) -> None:
        super().__init__()
        self.register_buffer("mean", transform.mean.clone())
        self.register_buffer("std", transform.std.clone())

    def forward(self, features: Tensor) -> Tensor:
        """Shape (n, d) to (n, d)."""
        return (features - self.mean) / self.std


class Pixels(nn.Module):
    """RGB bytes (n, h, w, 3) of any size to the images that the network reads, as the `ImageTransform` makes them.

    Args:
        transform: of the run.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, transform: ImageTransform) -> None:
        super().__init__()
        self.transform, self.tall = transform, columns_may_come_first()
        for name, values in (("mean", transform.mean), ("std", transform.std)):
            self.register_buffer(name, torch.tensor(values).view(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Shape (n, channels, size, size)."""
        pixels = images.permute(0, 3, 1, 2).double()
        if self.transform.channels == 1:
            weights = torch.tensor(_GREY, dtype=torch.float64).view(3, 1, 1)
            pixels = (((pixels * weights).sum(1, keepdim=True) + 0x8000) / 0x10000).floor()
        side = self.transform.resized
        pixels = resized(pixels, (side, side), "bilinear", tall=self.tall)
        start, end = (side - self.transform.size) // 2, (side + self.transform.size) // 2
        pixels = pixels[:, :, start:end, start:end]
        return (pixels.float() / 255 - self.mean) / self.std


class ScenePixels(nn.Module):
    """RGB bytes (n, h, w, 3) of any size to the images that a segmenter reads.

    Args:
        transform: of the run.
    """

    def __init__(self, transform: SceneTransform) -> None:
        super().__init__()
        self.transform, self.tall = transform, columns_may_come_first()

    def forward(self, images: Tensor) -> Tensor:
        """Shape (n, 3, height, width)."""
        pixels = images.permute(0, 3, 1, 2)
        return self.transform.normalise(resized(pixels, self.transform.size, "bicubic", tall=self.tall).float())


_ANY_SIZE = RESNETS
"""Backbones of classification whose files take images of any size; `PixelBackbone` says it of those of segmentation.

LeNet has one size; the small CNN's pooling to a grid becomes fixed places in ONNX; EfficientNet's padding, which
depends on the size at every layer, keeps torch busy for ever when the size is a symbol; of a user's own network nobody
knows.
"""


class Networks(nn.Module):
    """The networks of a run, in evaluation mode.

    Args:
        predictor: of the run.
        before: what happens to samples before the model.
        refined: whether the ρ of Eq. 3 is given, too.
    """

    def __init__(self, predictor: Predictor | ScenePredictor, before: nn.Module, *, refined: bool) -> None:
        super().__init__()
        self.before, self.model = before, predictor.model
        self.refiner = require_refiner(predictor.refiner) if refined else None
        self.eval().requires_grad_(False)


class ClassProgram(Networks):
    """From samples to logits, probabilities and, where they are wanted, refined probabilities.

    Args:
        predictor: of the run.
        transforms: whether images are RGB bytes of any size, or what the network itself reads.
        refined: whether the ρ of Eq. 3 is given, too.
    """

    def __init__(self, predictor: Predictor, *, transforms: bool, refined: bool) -> None:
        before = nn.Sequential()
        if isinstance(predictor.transform, FeatureTransform):
            before.append(ZScores(predictor.transform))
        elif transforms and isinstance(predictor.transform, ImageTransform):
            before.append(Pixels(predictor.transform))
        if predictor.backbone is not None and predictor.scaling is not None:
            before.extend([predictor.backbone[1], ZScores(predictor.scaling)])
        super().__init__(predictor, before, refined=refined)

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """(logits, probabilities[, refined]), each (n, K)."""
        features = self.model.encoder(self.before(inputs))
        logits = self.model.head(features)
        found = (logits, logits.softmax(1))
        return found if self.refiner is None else (*found, self.refiner.refined(features, logits))


class SceneProgram(Networks):
    """From images to maps of logits, probabilities, labels and, where they are wanted, refined probabilities.

    Args:
        predictor: of the run.
        transforms: whether images are RGB bytes of any size, or what the network itself reads.
        refined: whether the ρ of Eq. 3 is given, too.
    """

    def __init__(self, predictor: ScenePredictor, *, transforms: bool, refined: bool) -> None:
        before = ScenePixels(predictor.transform) if transforms else nn.Identity()
        super().__init__(predictor, before, refined=refined)
        self.transforms = transforms

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """(logits, probabilities, labels[, refined]) at the images' size; labels (n, h, w), others (n, K, h, w)."""
        size = images.shape[1:3] if self.transforms else images.shape[2:4]
        features = self.model.encoder(self.before(images))
        small = self.model.head(features)
        logits = resize_maps(small, size)
        probabilities = logits.softmax(1)
        found = (logits, probabilities, probabilities.argmax(1))
        if self.refiner is None:
            return found
        return (*found, resize_maps(log_refined_maps(self.refiner, features, small), size).softmax(1))


@dataclass(frozen=True, eq=False)
class Program:
    """What is written, and what it has to equal.

    Args:
        module: `ClassProgram` or `SceneProgram`.
        predictor: that it was made of.
        transforms: whether images are RGB bytes of any size.
    """

    module: ClassProgram | SceneProgram
    predictor: Predictor | ScenePredictor
    transforms: bool

    @property
    def input_name(self) -> str:
        """What goes in."""
        return "features" if isinstance(self.predictor.transform, FeatureTransform) else "images"

    @property
    def output_names(self) -> list[str]:
        """What comes out."""
        maps = ["labels"] if isinstance(self.module, SceneProgram) else []
        return ["logits", "probabilities", *maps, *(["refined"] if self.module.refiner is not None else [])]

    @property
    def free_axes(self) -> tuple[int, ...]:
        """Axes of the input that may have any length."""
        if self.transforms:
            return (0, 1, 2)
        return (0, 2, 3) if self._any_size else (0,)

    @property
    def _any_size(self) -> bool:
        if isinstance(self.predictor, ScenePredictor):
            return self.predictor.model.architecture.spec.any_size
        frozen, trained = self.predictor.backbone, self.predictor.model.architecture.backbone
        return (trained if frozen is None else frozen[0]) in _ANY_SIZE


def make_program(predictor: Predictor | ScenePredictor, *, transforms: bool, refined: bool) -> Program:
    """The program of a predictor; what it cannot have is a RunError.

    Args:
        predictor: on the CPU.
        transforms: images are RGB bytes of any size.
        refined: the ρ of Eq. 3 is given, too.
    """
    if transforms and isinstance(predictor.transform, FeatureTransform):
        raise RunError("this model reads features, whose scaling is always in the file; leave out --transforms")
    kind: Any = ClassProgram if isinstance(predictor, Predictor) else SceneProgram
    return Program(kind(predictor, transforms=transforms, refined=refined), predictor, transforms)
