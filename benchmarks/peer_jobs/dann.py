"""The task and the DANN that every peer trains, with torch and NumPy alone.

Constant strength and constant learning rate: what all of the libraries have. Every job reads the files, standardises
each domain, trains, predicts the whole target and writes the predictions.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

BATCH = 64
LR, MOMENTUM, WEIGHT_DECAY = 0.01, 0.9, 1e-3


@dataclass(frozen=True, eq=False)
class Task:
    """Features of two domains, standardised.

    Args:
        source: Shape (n, d).
        labels: Of the source, shape (n,).
        target: Shape (m, d).
        classes: Their number.
        steps: Steps to train.
    """

    source: Tensor
    labels: Tensor
    target: Tensor
    classes: int
    steps: int

    @property
    def width(self) -> int:
        """Number of inputs, d."""
        return self.source.shape[1]


class Clock:
    """The CPU time of this process after every step."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, *_: Any) -> None:
        """Note the time; to be called after every step."""
        self.times.append(time.process_time())

    @property
    def step(self) -> float:
        """Mean CPU seconds of a step, without the first tenth of them."""
        late = self.times[len(self.times) // 10 :]
        return (late[-1] - late[0]) / (len(late) - 1)


class Reversal(torch.autograd.Function):
    """The identity, whose gradient is reversed."""

    @staticmethod
    def forward(_context: Any, rows: Tensor) -> Tensor:
        """Return the rows."""
        return rows.view_as(rows)

    @staticmethod
    def backward(_context: Any, gradient: Tensor) -> Tensor:
        """Return the gradient with the other sign."""
        return -gradient


def reverse(features: Tensor) -> Tensor:
    """The features, whose gradient is reversed."""
    reversed_: Tensor = Reversal.apply(features)  # type: ignore[no-untyped-call]
    return reversed_


def make_encoder(width: int) -> nn.Sequential:
    """Inputs to 256 features: the network that ParetoDA takes for feature data."""
    sizes = (width, 512, 256)
    layers = [
        layer
        for inputs, outputs in pairwise(sizes)
        for layer in (nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU(), nn.Dropout(0.5))
    ]
    return nn.Sequential(*layers)


def make_discriminator() -> nn.Sequential:
    """Features to one score."""
    hidden = [layer for _ in range(2) for layer in (nn.Linear(256, 256), nn.BatchNorm1d(256), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(256, 1), nn.Flatten(0))


def make_optimiser(*networks: nn.Module) -> torch.optim.SGD:
    parameters = [parameter for network in networks for parameter in network.parameters()]
    return torch.optim.SGD(parameters, lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)


def predict(encoder: nn.Module, head: nn.Module, rows: Tensor) -> NDArray[np.int64]:
    """Classes of the rows, in evaluation mode."""
    with torch.no_grad():
        found: NDArray[np.int64] = head(encoder.eval()(rows)).argmax(1).numpy()
    return found


def run_job(train: Callable[[Task, Clock], NDArray[np.int64]]) -> None:
    """Run a job from the command line: SOURCE.npz TARGET.npz STEPS PREDICTIONS.npy; print the seconds of a step.

    Args:
        train: Trains on the task, calls the clock after every step, and returns the classes of the target.
    """
    source, target, steps, out = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with np.load(source) as ours, np.load(target) as theirs:
        rows = [_standardise(file["x"]) for file in (ours, theirs)]
        task = Task(rows[0], torch.from_numpy(ours["y"]), rows[1], len(ours["classes"]), int(steps))
    clock = Clock()
    np.save(out, train(task, clock))
    print(json.dumps({"step": clock.step, "steps": len(clock.times)}))


def _standardise(x: NDArray[np.float32]) -> Tensor:
    rows = torch.from_numpy(x).float()
    return (rows - rows.mean(0)) / rows.std(0).clamp(min=1e-6)
