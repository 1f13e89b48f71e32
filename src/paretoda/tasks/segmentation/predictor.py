"""A trained segmenter that can be used alone: transform, network, names and colours, in two files without code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load as load_tensors
from torch import Tensor

from paretoda.data.prefetching import Reading, prefetch
from paretoda.data.samples import Image8
from paretoda.data.segmentation import SceneSamples, SceneTransform, open_scenes
from paretoda.data.segmentation.samples import FileScenes
from paretoda.errors import RunError
from paretoda.evaluation.predictions import evaluation_mode
from paretoda.io.files import parse_json
from paretoda.maps import resize_maps
from paretoda.models.memory import put_channels_last
from paretoda.models.segmentation.segmenter import Segmenter, describe, segmenter_from_description
from paretoda.objectives.target.tcm import Tcm
from paretoda.run.directory.model_files import check_format, load_module, require_refiner, select_part, write_model
from paretoda.run.task import NOT_ONE_MODEL

TASK = "segmentation"
"""The value of "task" in model.json."""


@dataclass(frozen=True, eq=False)
class Scene:
    """An image and its prediction.

    Args:
        name: Name of the image.
        image: The image as it was given, shape (h, w, 3).
        labels: The most probable classes, uint8, shape (h, w).
        confidence: Their probabilities, float32, shape (h, w).
        entropy: Entropy of the probabilities, 0 (certain) to 1 (uniform), float32, shape (h, w).
    """

    name: str
    image: Image8
    labels: NDArray[np.uint8]
    confidence: NDArray[np.float32]
    entropy: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SegmentationPredictor:
    """A segmenter with its transform: from images of the target's kind to label maps at the images' own sizes.

    Args:
        classes: Names of the K classes.
        colours: Colours of the classes.
        transform: Maps images to inputs.
        model: Maps inputs to logits at the resolution of the features.
        refiner: The class-wise discriminators of TCM, which give the refined prediction ρ; None without them.
    """

    classes: tuple[str, ...]
    colours: tuple[tuple[int, int, int], ...]
    transform: SceneTransform
    model: Segmenter
    refiner: Tcm | None = None

    def predict(self, inputs: Any, *, refined: bool = False) -> list[NDArray[np.uint8]]:
        """Return the label map of each image (a path or an array), at its own size."""
        return [scene.labels for scene in self.scenes(open_scenes(inputs, labelled=False), refined=refined)]

    def predict_proba(self, inputs: Any, *, refined: bool = False) -> list[NDArray[np.float32]]:
        """Return the class probabilities at every pixel of each image (a path or an array), shape (K, h, w) each."""
        samples = open_scenes(inputs, labelled=False)
        images = (samples.read([place])[0] for place in range(len(samples)))
        return [self.probabilities(image, refined=refined).numpy() for image in images]

    def scenes(
        self,
        samples: SceneSamples,
        *,
        refined: bool = False,
        places: Sequence[int] | None = None,
        workers: int | None = None,
    ) -> Iterator[Scene]:
        """Predict one image after the other.

        Args:
            samples: Images of the target's kind.
            refined: Use the refined predictions ρ of Eq. 3.
            places: Positions among the samples, in order; all by default.
            workers: Threads that read ahead; None: as many as fit.
        """

        def read(place: int) -> tuple[str, Image8]:
            return samples.names([place])[0], samples.read([place])[0]

        threads = Reading(workers).threads(files=isinstance(samples, FileScenes))
        for name, image in prefetch(read, range(len(samples)) if places is None else places, threads):
            yield self._scene(name, image, refined=refined)

    def _scene(self, name: str, image: Image8, *, refined: bool) -> Scene:
        probabilities = self.probabilities(image, refined=refined)
        confidence, labels = probabilities.max(dim=0)
        uncertain = torch.special.entr(probabilities).sum(0) / np.log(len(self.classes))
        return Scene(
            name,
            image,
            labels.to(torch.uint8).numpy(),
            confidence.numpy(),
            uncertain.clamp(0, 1).numpy(),
        )

    def probabilities(self, image: Image8, *, refined: bool = False) -> Tensor:
        """Return class probabilities at every pixel of one image (h, w, 3), shape (K, h, w), on the CPU."""
        refiner = require_refiner(self.refiner) if refined else None
        device = next(self.model.parameters()).device
        with evaluation_mode(self.model):
            features = self.model.encoder(self.transform.evaluate([image]).to(device))
            logits = self.model.head(features)
            if refiner is not None:
                logits = refine_maps(refiner, features, logits)
            return resize_maps(logits, image.shape[:2]).softmax(1)[0].cpu()

    def save(self, weights: Path, description: Path) -> None:
        """Write both files; the description first, so that weights are never without one."""
        parts = {"model": self.model.state_dict(), "refiner": self.refiner.state_dict() if self.refiner else {}}
        facts = {
            "task": TASK,
            "classes": list(self.classes),
            "colours": [list(colour) for colour in self.colours],
            "transform": self.transform.to_json(),
            "architecture": describe(self.model),
            "refiner": self.refiner is not None and self.refiner.settings(),
        }
        write_model(weights, description, parts, facts)


def refine_maps(refiner: Tcm, features: Tensor, logits: Tensor) -> Tensor:
    """Return the log ρ of every pixel of the maps, shape (n, K, h, w)."""
    count, classes, height, width = logits.shape
    rows = [maps.permute(0, 2, 3, 1).flatten(0, 2) for maps in (features, logits)]
    return refiner.log_refined(*rows).view(count, height, width, classes).permute(0, 3, 1, 2)


def assemble_predictor(
    facts: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
) -> SegmentationPredictor:
    """Assemble what `save` wrote from the contents of its two files."""
    check_format(facts)
    part = partial(select_part, tensors)
    model = load_module(lambda: segmenter_from_description(facts["architecture"]), part("model"))
    if device.type == "cpu":
        put_channels_last(model)
    classes = tuple(str(name) for name in facts["classes"])
    colours = tuple((int(r), int(g), int(b)) for r, g, b in facts["colours"])
    if not all(0 <= part <= 255 for colour in colours for part in colour):
        raise ValueError("a colour is not in 0..255")
    if not len(classes) == len(colours) == model.architecture.classes:
        raise ValueError(f"{len(classes)} names and {len(colours)} colours for {model.architecture.classes} classes")
    refiner = None
    if facts["refiner"]:
        refiner = load_module(lambda: Tcm(model.width, len(classes), **facts["refiner"]), part("refiner")).to(device)
    transform = SceneTransform.from_json(facts["transform"])
    return SegmentationPredictor(classes, colours, transform, model.to(device), refiner)


def load_predictor(weights: Path, description: Path, device: torch.device | None = None) -> SegmentationPredictor:
    """Load the predictor that `save` wrote; nothing in the files is executed."""
    try:
        facts = parse_json(description.read_bytes())
        return assemble_predictor(facts, load_tensors(weights.read_bytes()), device or torch.device("cpu"))
    except FileNotFoundError as error:
        raise RunError(f"{error.filename} is missing: the run has not finished, or this is not a run") from error
    except Exception as error:  # whatever a damaged or hostile file leads to
        first = (str(error).splitlines() or [type(error).__name__])[:2][-1].strip()
        raise RunError(
            f"the model in {weights.parent} cannot be read ({first}); it is damaged or not a model"
        ) from error


@dataclass(frozen=True, eq=False)
class MeanPredictor(SegmentationPredictor):
    """Several segmenters of the same classes, whose probabilities are averaged; all else is the first one's.

    Args:
        runs: All predictors, including the first.
    """

    runs: tuple[SegmentationPredictor, ...] = ()

    def probabilities(self, image: Image8, *, refined: bool = False) -> Tensor:
        """Return the mean probabilities at every pixel of one image (h, w, 3), shape (K, h, w), on the CPU."""
        return torch.stack([run.probabilities(image, refined=refined) for run in self.runs]).mean(0)

    def save(self, weights: Path, description: Path) -> None:  # noqa: ARG002
        """Refuse: a mean is not written as one file."""
        raise RunError(NOT_ONE_MODEL)


def average(predictors: Sequence[SegmentationPredictor]) -> SegmentationPredictor:
    """Return one predictor whose probabilities are the mean; a single predictor is returned as it is."""
    runs = [one for each in predictors for one in (each.runs if isinstance(each, MeanPredictor) else (each,))]
    return runs[0] if len(runs) == 1 else MeanPredictor(**vars(runs[0]), runs=tuple(runs))
