"""Several finished runs as one predictor: the mean of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.data.samples import Image8, Samples
from paretoda.errors import RunError
from paretoda.run.directory.directory import RunDirectory
from paretoda.tasks.classification.predictor import Predictor, load_predictor
from paretoda.tasks.segmentation.predictor import ScenePredictor, is_segmentation, load_scene_predictor

_NO_FILE = "the mean of several runs is no model of its own: save each of them"


@dataclass(frozen=True, eq=False)
class MeanPredictor(Predictor):
    """Several classifiers of the same classes; all but the probabilities is the first one's.

    Args:
        runs: all of them, the first as well.
    """

    runs: tuple[Predictor, ...] = ()

    def probabilities(
        self,
        samples: Samples,
        *,
        refined: bool = False,
        calibrated: bool = False,  # noqa: ARG002
        batch_size: int = 256,
        workers: int | None = None,
    ) -> NDArray[np.float32]:
        """The mean of all, shape (n, K); it has no temperature, so that `calibrated` changes nothing."""
        how: dict[str, Any] = {"refined": refined, "batch_size": batch_size, "workers": workers}
        found: NDArray[np.float32] = np.stack([run.probabilities(samples, **how) for run in self.runs]).mean(axis=0)
        return found

    def cropping(self, crops: int) -> Predictor:
        """The same with so many crops of an image in every run."""
        return mean_of([run.cropping(crops) for run in self.runs])

    def preferring(self, preference: Sequence[float]) -> Predictor:  # noqa: ARG002
        """Not for several: a preference is among the losses of one."""
        raise RunError("a preference is for one run; leave out --preference or --with")

    def save(self, weights: Path, description: Path) -> None:  # noqa: ARG002
        """Not in one file."""
        raise RunError(_NO_FILE)


@dataclass(frozen=True, eq=False)
class MeanScenePredictor(ScenePredictor):
    """Several segmenters of the same classes; all but the probabilities is the first one's.

    Args:
        runs: all of them, the first as well.
    """

    runs: tuple[ScenePredictor, ...] = ()

    def probabilities(self, image: Image8, *, refined: bool = False) -> Tensor:
        """The mean of all at every pixel of one image (h, w, 3), shape (K, h, w), on the CPU."""
        return torch.stack([run.probabilities(image, refined=refined) for run in self.runs]).mean(0)

    def save(self, weights: Path, description: Path) -> None:  # noqa: ARG002
        """Not in one file."""
        raise RunError(_NO_FILE)


def mean_of(runs: Sequence[Predictor]) -> Predictor:
    """Classifiers as one predictor, whose probabilities are the mean; one alone is itself."""
    every = [part for run in runs for part in (run.runs if isinstance(run, MeanPredictor) else (run,))]
    _check_classes(every)
    # A temperature was fitted for one model, not for a mean.
    return every[0] if len(every) == 1 else MeanPredictor(**{**vars(every[0]), "temperature": None}, runs=tuple(every))


def mean_of_scenes(runs: Sequence[ScenePredictor]) -> ScenePredictor:
    """Segmenters as one predictor, whose probabilities are the mean; one alone is itself."""
    every = [part for run in runs for part in (run.runs if isinstance(run, MeanScenePredictor) else (run,))]
    _check_classes(every)
    return every[0] if len(every) == 1 else MeanScenePredictor(**vars(every[0]), runs=tuple(every))


def load_mean(paths: Sequence[Path], device: torch.device) -> Predictor:
    """The mean of the classification runs in these directories."""
    return mean_of([_loaded(path, device) for path in paths])


def load_scene_mean(paths: Sequence[Path], device: torch.device) -> ScenePredictor:
    """The mean of the segmentation runs in these directories."""
    return mean_of_scenes([_loaded_scenes(path, device) for path in paths])


def _loaded(path: Path, device: torch.device) -> Predictor:
    directory = _directory(path)
    if is_segmentation(directory.description):
        raise RunError(f"the run in {path} is one of segmentation: only runs of one task have a mean")
    return load_predictor(directory.model, directory.description, device)


def _loaded_scenes(path: Path, device: torch.device) -> ScenePredictor:
    directory = _directory(path)
    if directory.description.exists() and not is_segmentation(directory.description):
        raise RunError(f"the run in {path} is none of segmentation, and this needs one")
    return load_scene_predictor(directory.model, directory.description, device)


def _directory(path: Path) -> RunDirectory:
    if not path.is_dir():
        raise RunError(f"the folder {path} is missing: give the directory of a finished run")
    return RunDirectory(path)


def _check_classes(runs: Sequence[Predictor | ScenePredictor]) -> None:
    first = runs[0].classes
    for number, run in enumerate(runs, start=1):
        if run.classes != first:
            raise RunError(
                f"runs of different classes have no mean: run {number} has {', '.join(run.classes)}, "
                f"the first has {', '.join(first)}"
            )
