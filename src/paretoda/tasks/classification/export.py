"""The exported program of a classifier: from features or images to logits and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paretoda.data.open.samples import open_samples
from paretoda.data.scaling import FeatureTransform, scale_features
from paretoda.data.transforms import ImageTransform
from paretoda.errors import RunError
from paretoda.models.backbones.resnet import RESNETS
from paretoda.objectives.parts.novelty import novelties
from paretoda.run.directory.model_files import require_refiner
from paretoda.run.export.program import Program, draw_images
from paretoda.run.export.resampling import columns_may_come_first, resize
from paretoda.tasks.classification.predictor import ClassificationPredictor, refine

_GREY = (19595.0, 38470.0, 7471.0)
"""Pillow's weights of red, green and blue in grey, in units of 2^-16."""
_ANY_SIZE = RESNETS
"""Backbones whose files take images of any size.

LeNet has one size; the small CNN's pooling to a grid becomes fixed positions in ONNX; EfficientNet's padding, which
depends on the size at every layer, keeps torch busy for ever when the size is a symbol; nothing is known of a user's
own network.
"""


_CROPS = "The run predicts from 10 crops of an image; the file takes the middle one, as `predict --crops 1` does."


class ZScores(nn.Module):
    """The `FeatureTransform` as a layer.

    Args:
        transform: Transform of the run.
    """

    mean: Tensor
    std: Tensor
    axes: Tensor | None

    def __init__(self, transform: FeatureTransform) -> None:
        super().__init__()
        self.register_buffer("mean", transform.mean.clone())
        self.register_buffer("std", transform.std.clone())
        self.register_buffer("axes", None if transform.axes is None else transform.axes.clone())
        self.unit_rows = transform.unit_rows

    def forward(self, features: Tensor) -> Tensor:
        """Scale features, shape (n, d), to what the network reads."""
        return scale_features(features, self.mean, self.std, self.axes, unit_rows=self.unit_rows)


class Pixels(nn.Module):
    """The `ImageTransform` as a layer: from RGB bytes (n, h, w, 3) of any size to the images that the network reads.

    Args:
        transform: Transform of the run.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, transform: ImageTransform) -> None:
        super().__init__()
        self.transform, self.tall = transform, columns_may_come_first()
        for name, values in (("mean", transform.mean), ("std", transform.std)):
            self.register_buffer(name, torch.tensor(values).view(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Return images of shape (n, channels, size, size)."""
        pixels = images.permute(0, 3, 1, 2).double()
        if self.transform.channels == 1:
            weights = torch.tensor(_GREY, dtype=torch.float64).view(3, 1, 1)
            pixels = (((pixels * weights).sum(1, keepdim=True) + 0x8000) / 0x10000).floor()
        side = self.transform.resized
        pixels = resize(pixels, (side, side), "bilinear", tall=self.tall)
        start, end = (side - self.transform.size) // 2, (side + self.transform.size) // 2
        pixels = pixels[:, :, start:end, start:end]
        return (pixels.float() / 255 - self.mean) / self.std


class ClassificationModule(nn.Module):
    """The networks of a run as one module: from samples to logits, probabilities and, on request, refined ones.

    Args:
        predictor: Predictor of the run.
        transforms: Whether images are RGB bytes of any size, or what the network itself reads.
        refined: Whether the ρ of Eq. 3 is an output as well.
    """

    def __init__(self, predictor: ClassificationPredictor, *, transforms: bool, refined: bool) -> None:
        super().__init__()
        self.before = nn.Sequential()
        if isinstance(predictor.transform, FeatureTransform):
            self.before.append(ZScores(predictor.transform))
        elif transforms and isinstance(predictor.transform, ImageTransform):
            self.before.append(Pixels(predictor.transform))
        if predictor.backbone is not None and predictor.scaling is not None:
            self.before.extend([predictor.backbone.network, ZScores(predictor.scaling)])
        self.model = predictor.model
        self.novel = predictor.threshold is not None
        self.refiner = nn.ModuleList(require_refiner(predictor.refiner)) if refined else None

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Return (logits, probabilities[, refined][, novelty]): shape (n, K), of the novelty (n,)."""
        features = self.model.encoder(self.before(inputs))
        logits = self.model.head(features)
        found: tuple[Tensor, ...] = (logits, logits.softmax(1))
        if self.refiner is not None:
            found = (*found, refine(self.model, [*self.refiner], features, logits))
        return (*found, novelties(found[1])) if self.novel else found


class ClassificationProgram(Program):
    """The program of a classifier.

    Args:
        predictor: Predictor of the run, on the CPU.
        transforms: Whether images go in as RGB bytes of any size.
        refined: Whether the ρ of Eq. 3 is an output as well.
    """

    def __init__(self, predictor: ClassificationPredictor, *, transforms: bool, refined: bool) -> None:
        if transforms and isinstance(predictor.transform, FeatureTransform):
            raise RunError("this model reads features, whose scaling is always in the file; leave out --transforms")
        facts = {
            "task": "classification",
            "classes": list(predictor.classes),
            "transform": predictor.transform.to_json(),
            "temperature": predictor.temperature,
            **({} if predictor.threshold is None else {"novelty_threshold": predictor.threshold}),
        }
        module = ClassificationModule(predictor, transforms=transforms, refined=refined)
        notes = (_CROPS,) if predictor.crops > 1 else ()
        super().__init__(module, transforms=transforms, facts=facts, notes=notes)
        self.predictor, self.refined = predictor.with_crops(1), refined

    @property
    def input_name(self) -> str:
        """Name of the input."""
        return "features" if isinstance(self.predictor.transform, FeatureTransform) else "images"

    @property
    def input_shape(self) -> tuple[str | int, ...]:
        """Shape of the input, with names for axes of any length."""
        transform: Any = self.predictor.transform
        if isinstance(transform, FeatureTransform):
            return "n", len(transform.mean)
        if self.transforms:
            return "n", "height", "width", 3
        sides: tuple[str | int, ...] = (transform.size, transform.size)
        return "n", transform.channels, *(("height", "width") if len(self.free_axes) > 1 else sides)

    @property
    def input_type(self) -> str:
        """Type of the input's numbers."""
        return "uint8" if self.transforms else "float32"

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        novel = self.predictor.threshold is not None
        return ["logits", "probabilities", *(["refined"] if self.refined else []), *(["novelty"] if novel else [])]

    @property
    def free_axes(self) -> tuple[int, ...]:
        """Axes of the input that may have any length."""
        if self.transforms:
            return 0, 1, 2
        frozen, trained = self.predictor.backbone, self.predictor.model.architecture.backbone
        return (0, 2, 3) if (trained if frozen is None else frozen.name) in _ANY_SIZE else (0,)

    @property
    def raw_size(self) -> tuple[int, int]:
        """Height and width of raw images that are not resized; (0, 0) for features."""
        transform = self.predictor.transform
        return (transform.resized, transform.resized) if isinstance(transform, ImageTransform) else (0, 0)

    def draw_raw(self, count: int, size: tuple[int, int], seed: int) -> NDArray[Any]:
        """Draw features around their mean, or images with coarse patches."""
        transform = self.predictor.transform
        if not isinstance(transform, FeatureTransform):
            return draw_images(count, size, seed)
        noise = np.random.default_rng(seed).standard_normal((count, len(transform.mean))).astype(np.float32)
        features: NDArray[np.float32] = transform.mean.numpy() + noise * transform.std.numpy()
        return features

    def inputs(self, raw: NDArray[Any]) -> Tensor:
        """Return the module's inputs for raw samples."""
        return torch.from_numpy(raw) if self.transforms or raw.ndim == 2 else self.predictor.transform.evaluate(raw)

    def predict(self, raw: NDArray[Any]) -> dict[str, NDArray[np.float32]]:
        """Return what the run's predictor gives for raw samples, by name of the output."""
        samples = open_samples(raw, labelled=False)
        names = {"probabilities": False, **({"refined": True} if self.refined else {})}
        found = {name: self.predictor.probabilities(samples, refined=refined) for name, refined in names.items()}
        if self.predictor.threshold is not None:
            found["novelty"] = novelties(torch.from_numpy(found["probabilities"])).numpy()
        return found
