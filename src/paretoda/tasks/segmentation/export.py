"""The exported program of a segmenter: from images to maps of logits, probabilities and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paretoda.data.segmentation import SceneTransform
from paretoda.maps import resize_maps
from paretoda.run.directory.model_files import require_refiner
from paretoda.run.export.program import Program, draw_images
from paretoda.run.export.resampling import columns_may_come_first, resize
from paretoda.tasks.segmentation.predictor import SegmentationPredictor, refine_maps


class ScenePixels(nn.Module):
    """The `SceneTransform` as a layer: from RGB bytes (n, h, w, 3) of any size to the images that the network reads.

    Args:
        transform: Transform of the run.
    """

    def __init__(self, transform: SceneTransform) -> None:
        super().__init__()
        self.transform, self.tall = transform, columns_may_come_first()

    def forward(self, images: Tensor) -> Tensor:
        """Return images of shape (n, 3, height, width)."""
        pixels = images.permute(0, 3, 1, 2)
        return self.transform.normalise(resize(pixels, self.transform.size, "bicubic", tall=self.tall).float())


class SegmentationModule(nn.Module):
    """The networks of a run as one module: from images to maps of logits, probabilities, labels and refined ones.

    Args:
        predictor: Predictor of the run.
        transforms: Whether images are RGB bytes of any size, or what the network itself reads.
        refined: Whether the ρ of Eq. 3 is an output as well.
    """

    def __init__(self, predictor: SegmentationPredictor, *, transforms: bool, refined: bool) -> None:
        super().__init__()
        self.before = ScenePixels(predictor.transform) if transforms else nn.Identity()
        self.model = predictor.model
        self.refiner = require_refiner(predictor.refiner) if refined else None
        self.transforms = transforms

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Return (logits, probabilities, labels[, refined]) at the images' size.

        Labels have the shape (n, h, w), the others (n, K, h, w).
        """
        size = images.shape[1:3] if self.transforms else images.shape[2:4]
        features = self.model.encoder(self.before(images))
        small = self.model.head(features)
        logits = resize_maps(small, size)
        probabilities = logits.softmax(1)
        found = (logits, probabilities, probabilities.argmax(1))
        if self.refiner is None:
            return found
        return (*found, resize_maps(refine_maps(self.refiner, features, small), size).softmax(1))


class SegmentationProgram(Program):
    """The program of a segmenter.

    Args:
        predictor: Predictor of the run, on the CPU.
        transforms: Whether images go in as RGB bytes of any size.
        refined: Whether the ρ of Eq. 3 is an output as well.
    """

    input_name = "images"

    def __init__(self, predictor: SegmentationPredictor, *, transforms: bool, refined: bool) -> None:
        facts = {
            "task": "segmentation",
            "classes": list(predictor.classes),
            "transform": predictor.transform.to_json(),
        }
        module = SegmentationModule(predictor, transforms=transforms, refined=refined)
        super().__init__(module, transforms=transforms, facts=facts)
        self.predictor, self.refined = predictor, refined

    @property
    def input_shape(self) -> tuple[str | int, ...]:
        """Shape of the input, with names for axes of any length."""
        if self.transforms:
            return "n", "height", "width", 3
        height, width = self.raw_size
        return "n", 3, *(("height", "width") if len(self.free_axes) > 1 else (height, width))

    @property
    def input_type(self) -> str:
        """Type of the input's numbers."""
        return "uint8" if self.transforms else "float32"

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return ["logits", "probabilities", "labels", *(["refined"] if self.refined else [])]

    @property
    def free_axes(self) -> tuple[int, ...]:
        """Axes of the input that may have any length."""
        if self.transforms:
            return 0, 1, 2
        return (0, 2, 3) if self.predictor.model.architecture.spec.any_size else (0,)

    @property
    def raw_size(self) -> tuple[int, int]:
        """Height and width of raw images that are not resized."""
        width, height = self.predictor.transform.size
        return height, width

    def draw_raw(self, count: int, size: tuple[int, int], seed: int) -> NDArray[Any]:
        """Draw images with coarse patches."""
        return draw_images(count, size, seed)

    def inputs(self, raw: NDArray[Any]) -> Tensor:
        """Return the module's inputs for raw images."""
        return torch.from_numpy(raw) if self.transforms else self.predictor.transform.evaluate(raw)

    def predict(self, raw: NDArray[Any]) -> dict[str, NDArray[np.float32]]:
        """Return what the run's predictor gives for raw images, by name of the output."""
        names = {"probabilities": False, **({"refined": True} if self.refined else {})}
        return {
            name: np.stack([self.predictor.probabilities(image, refined=refined).numpy() for image in raw])
            for name, refined in names.items()
        }
