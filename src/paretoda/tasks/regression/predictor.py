"""A trained regression that can be used alone: the files and transforms of a classifier, and the scale of its value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from paretoda.data.open.samples import open_samples
from paretoda.data.samples import Samples
from paretoda.data.values import Values
from paretoda.errors import RunError
from paretoda.evaluation.predictions import predict
from paretoda.io.files import parse_json
from paretoda.run.task import NOT_ONE_MODEL
from paretoda.tasks import REGRESSION
from paretoda.tasks.classification.predictor import ClassificationPredictor, load_predictor
from paretoda.types import Progress

_NO_CLASSES = "a regression has no classes and no probabilities; use predict, which returns values"


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionPredictor(ClassificationPredictor):
    """A network with one output and its transforms: from raw samples of the target's kind to values.

    It differs from a classifier's predictor in what it makes of the output.

    Args:
        mean: Mean of the source's values, which an output of 0 stands for.
        deviation: Their standard deviation, the unit of the output.
    """

    mean: float
    deviation: float

    def predict(self, inputs: Any, *, refined: bool = False) -> list[float]:  # type: ignore[override]
        """Return the values of samples (a path, an array, a dataset), in the units of the source's values."""
        if refined:
            raise RunError(_NO_CLASSES)
        return [float(value) for value in self.values(open_samples(inputs, labelled=False))]

    def predict_proba(self, inputs: Any, *, refined: bool = False) -> NDArray[np.float32]:  # noqa: ARG002
        """Refuse: values have no probabilities."""
        raise RunError(_NO_CLASSES)

    def values(self, samples: Samples, *, workers: int | None = None, progress: Progress | None = None) -> Values:
        """Return the values of opened samples, shape (n,).

        Args:
            samples: Opened samples of the target's kind.
            workers: Threads that read ahead; None: as many as fit.
            progress: Called while features of a frozen backbone are computed.
        """
        inputs = self._inputs(samples, 256, workers=workers, progress=progress)
        return self.in_units(predict(self.model, inputs, device=self._device)[1].numpy())

    def in_units(self, outputs: NDArray[Any]) -> Values:
        """Return the values that outputs of the network, shape (n, 1), stand for."""
        values: Values = self.mean + self.deviation * outputs[:, 0].astype(np.float64)
        return values

    def _description(self) -> dict[str, Any]:
        scale = {"mean": self.mean, "deviation": self.deviation}
        return {**super()._description(), "task": REGRESSION, "value": scale}


def load_regression(weights: Path, description: Path, device: torch.device | None = None) -> RegressionPredictor:
    """Load the predictor that `save` wrote; nothing in the files is executed."""
    network = load_predictor(weights, description, device)
    try:
        scale = parse_json(description.read_bytes())["value"]
        mean, deviation = float(scale["mean"]), float(scale["deviation"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{description} does not say in which units values are predicted; it is damaged") from error
    if not (np.isfinite(mean) and np.isfinite(deviation) and deviation > 0) or len(network.classes) != 1:
        raise RunError(f"{description} does not describe a regression of one value; it is damaged")
    return RegressionPredictor(**vars(network), mean=mean, deviation=deviation)


@dataclass(frozen=True, eq=False, kw_only=True)
class MeanRegression(RegressionPredictor):
    """Several regressions, whose values are averaged; all else is the first one's.

    Args:
        runs: All predictors, including the first.
    """

    runs: tuple[RegressionPredictor, ...] = ()

    def values(self, samples: Samples, *, workers: int | None = None, progress: Progress | None = None) -> Values:
        """Return the mean values, shape (n,)."""
        mean: Values = np.mean([run.values(samples, workers=workers, progress=progress) for run in self.runs], axis=0)
        return mean

    def save(self, weights: Path, description: Path) -> None:  # noqa: ARG002
        """Refuse: a mean is not written as one file."""
        raise RunError(NOT_ONE_MODEL)


def average(predictors: Sequence[RegressionPredictor]) -> RegressionPredictor:
    """Return one predictor whose values are the mean; a single predictor is returned as it is."""
    runs = [one for each in predictors for one in (each.runs if isinstance(each, MeanRegression) else (each,))]
    return runs[0] if len(runs) == 1 else MeanRegression(**vars(runs[0]), runs=tuple(runs))
