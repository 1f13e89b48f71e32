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
from paretoda.data.segmentation import SceneSamples, SceneTransform
from paretoda.data.segmentation.samples import FileScenes
from paretoda.errors import RunError
from paretoda.evaluation.predictions import evaluation_mode
from paretoda.io.files import from_json
from paretoda.maps import resize_maps
from paretoda.models.segmentation.segmenter import Segmenter, describe, segmenter_from_description
from paretoda.objectives.target.tcm import Tcm
from paretoda.run.directory.model_files import check_format, load_module, part_of, require_refiner, write_model

TASK = "segmentation"


@dataclass(frozen=True, eq=False)
class Scene:
    """An image and what the model makes of it.

    Args:
        name: of the image.
        image: as it was given, shape (h, w, 3).
        labels: the most probable classes, uint8, shape (h, w).
        confidence: their probabilities, float32, shape (h, w).
        entropy: of the probabilities, 0 (certain) to 1 (uniform), float32, shape (h, w).
    """

    name: str
    image: Image8
    labels: NDArray[np.uint8]
    confidence: NDArray[np.float32]
    entropy: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ScenePredictor:
    """From images of the target's kind to maps of classes at the images' own sizes.

    Args:
        classes: names, K of them.
        colours: of the classes.
        transform: images -> inputs.
        model: inputs -> logits at the resolution of the features.
        refiner: the class-wise discriminators, where TCM was trained: they offer the refined prediction ρ.
    """

    classes: tuple[str, ...]
    colours: tuple[tuple[int, int, int], ...]
    transform: SceneTransform
    model: Segmenter
    refiner: Tcm | None = None

    def scenes(
        self,
        samples: SceneSamples,
        *,
        refined: bool = False,
        places: Sequence[int] | None = None,
        workers: int | None = None,
    ) -> Iterator[Scene]:
        """One image after the other.

        Args:
            samples: images of the target's kind.
            refined: by the ρ of Eq. 3.
            places: positions among the samples, in order; all by default.
            workers: threads that read ahead; None: as many as fit.
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
        """Of every class at every pixel of one image (h, w, 3), shape (K, h, w), on the CPU."""
        refiner = require_refiner(self.refiner) if refined else None
        device = next(self.model.parameters()).device
        with evaluation_mode(self.model):
            features = self.model.encoder(self.transform.evaluate([image]).to(device))
            logits = self.model.head(features)
            if refiner is not None:
                logits = log_refined_maps(refiner, features, logits)
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


def log_refined_maps(refiner: Tcm, features: Tensor, logits: Tensor) -> Tensor:
    """The log ρ of every pixel of the maps, shape (n, K, h, w)."""
    count, classes, height, width = logits.shape
    rows = [maps.permute(0, 2, 3, 1).flatten(0, 2) for maps in (features, logits)]
    return refiner.log_refined(*rows).view(count, height, width, classes).permute(0, 3, 1, 2)


def assemble_scenes(facts: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> ScenePredictor:
    """What `save` wrote, from its two files' contents."""
    check_format(facts)
    part = partial(part_of, tensors)
    model = load_module(lambda: segmenter_from_description(facts["architecture"]), part("model"))
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
    return ScenePredictor(classes, colours, transform, model.to(device), refiner)


def is_segmentation(description: Path) -> bool:
    """Whether the model in a run is a segmenter."""
    try:
        facts = from_json(description.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(facts, dict) and facts.get("task") == TASK


def load_scene_predictor(weights: Path, description: Path, device: torch.device | None = None) -> ScenePredictor:
    """The predictor that `save` wrote; nothing in the files is executed."""
    try:
        facts = from_json(description.read_bytes())
        return assemble_scenes(facts, load_tensors(weights.read_bytes()), device or torch.device("cpu"))
    except FileNotFoundError as error:
        raise RunError(f"{error.filename} is missing: the run has not finished, or this is no run") from error
    except Exception as error:  # whatever a damaged or hostile file leads to
        first = (str(error).splitlines() or [type(error).__name__])[:2][-1].strip()
        raise RunError(f"the model in {weights.parent} cannot be read ({first}); it is damaged or no model") from error
