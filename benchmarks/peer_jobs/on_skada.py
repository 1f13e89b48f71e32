"""DANN of skada's deep part, which trains by skorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from dann import BATCH, LR, MOMENTUM, WEIGHT_DECAY, Clock, Task, make_discriminator, make_encoder, run_job
from numpy.typing import NDArray
from skada.deep import DANN
from skada.deep.modules import GradientReversalLayer
from skorch.callbacks import Callback
from torch import Tensor, nn


class Classifier(nn.Module):
    """Encoder and head, as skada calls them.

    Args:
        width: Number of inputs.
        classes: Number of classes.
    """

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.encoder, self.head = make_encoder(width), nn.Linear(256, classes)

    def forward(self, rows: Tensor, sample_weight: Any = None) -> Tensor:  # noqa: ARG002
        """Return the logits."""
        scores: Tensor = self.head(self.encoder(rows))
        return scores


class DomainClassifier(nn.Module):
    """The discriminator behind a reversal, with a sigmoid, because skada's loss is that of probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.network = make_discriminator()

    def forward(self, rows: Tensor) -> Tensor:
        """Return the probability that each row comes from the target."""
        probabilities: Tensor = self.network(GradientReversalLayer.apply(rows, 1.0)).sigmoid()
        return probabilities


class Timing(Callback):  # type: ignore[misc]  # skorch has no types
    """Calls the clock after every step, and ends the training as Ctrl-C does, which skorch offers.

    Args:
        clock: The clock.
        steps: Number of steps.
    """

    def __init__(self, clock: Clock, steps: int) -> None:
        self.clock, self.steps = clock, steps

    def on_batch_end(self, _net: Any, *, training: bool = True, **_: Any) -> None:
        """Call the clock."""
        if training:
            self.clock()
        if len(self.clock.times) == self.steps:
            raise KeyboardInterrupt


def train(task: Task, clock: Clock) -> NDArray[np.int64]:
    net = DANN(
        Classifier(task.width, task.classes),
        layer_name="encoder",
        domain_classifier=DomainClassifier(),
        reg=0.5,  # skada adds the losses of both domains, and the others take their mean
        optimizer=torch.optim.SGD,
        optimizer__momentum=MOMENTUM,
        optimizer__weight_decay=WEIGHT_DECAY,
        lr=LR,
        batch_size=BATCH,
        max_epochs=task.steps,
        train_split=None,
        verbose=0,
        callbacks=[Timing(clock, task.steps)],
    )
    x = torch.cat([task.source, task.target]).numpy()
    y = np.concatenate([task.labels.numpy(), np.full(len(task.target), -1)])
    domains = np.repeat([1, -2], [len(task.source), len(task.target)])
    net.fit(x, y, sample_domain=domains)
    found: NDArray[np.int64] = net.predict(task.target.numpy(), sample_domain=np.full(len(task.target), -2))
    return found


if __name__ == "__main__":
    run_job(train)
