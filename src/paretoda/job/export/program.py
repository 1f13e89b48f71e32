"""The networks of a run as one module: what `paretoda predict` is given goes in, what it computes comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from paretoda.data.scaling import FeatureTransform
from paretoda.data.transforms import ImageTransform
from paretoda.job.directory import RunError
from paretoda.job.export.layers import Pixels, ScenePixels, ZScores
from paretoda.job.model_files import need_refiner
from paretoda.job.predictor import Predictor
from paretoda.job.segmentation.predictor import ScenePredictor, log_refined_maps
from paretoda.maps import enlarged
from paretoda.models.resnet import RESNETS

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
        self.refiner = need_refiner(predictor.refiner) if refined else None
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
        logits = enlarged(small, size)
        probabilities = logits.softmax(1)
        found = (logits, probabilities, probabilities.argmax(1))
        if self.refiner is None:
            return found
        return (*found, enlarged(log_refined_maps(self.refiner, features, small), size).softmax(1))


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
            return self.predictor.model.architecture.known.any_size
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
