"""The exported program of a regression: from features or images to a value in its units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from paretoda.data.open.samples import open_samples
from paretoda.errors import RunError
from paretoda.tasks import REGRESSION
from paretoda.tasks.classification.export import ClassificationProgram
from paretoda.tasks.regression.predictor import RegressionPredictor


class RegressionModule(nn.Module):
    """The networks of a run as one module: from samples to values.

    Args:
        network: The module of a classifier, whose first output is that of the network.
        mean: Mean of the source's values.
        deviation: Their standard deviation.
    """

    def __init__(self, network: nn.Module, mean: float, deviation: float) -> None:
        super().__init__()
        self.network, self.mean, self.deviation = network, mean, deviation

    def forward(self, inputs: Tensor) -> tuple[Tensor]:
        """Return the values, shape (n, 1)."""
        return (self.mean + self.deviation * self.network(inputs)[0],)


class RegressionProgram(ClassificationProgram):
    """The program of a regression, with the inputs of a classifier's and one output.

    Args:
        predictor: Predictor of the run, on the CPU.
        transforms: Whether images go in as RGB bytes of any size.
        refined: Not for values.
    """

    predictor: RegressionPredictor

    def __init__(self, predictor: RegressionPredictor, *, transforms: bool, refined: bool) -> None:
        if refined:
            raise RunError("values have no refined predictions; leave out --refined")
        super().__init__(predictor, transforms=transforms, refined=False)
        self.module = RegressionModule(self.module, predictor.mean, predictor.deviation).eval()
        self.facts = {"task": REGRESSION, "output": "value", "transform": predictor.transform.to_json()}

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return ["value"]

    def predict(self, raw: NDArray[Any]) -> dict[str, NDArray[np.float32]]:
        """Return what the run's predictor gives for raw samples, by name of the output."""
        values = self.predictor.values(open_samples(raw, labelled=False))
        return {"value": values[:, None].astype(np.float32)}
