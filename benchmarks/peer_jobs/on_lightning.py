"""DANN as a Lightning module; its logger, checkpoints and bars are switched off."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
import torch
from dann import BATCH, Clock, Task, make_discriminator, make_encoder, make_optimiser, predict, reverse, run_job
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import CombinedLoader
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch.utils.data import DataLoader, TensorDataset


class Dann(LightningModule):
    """DANN.

    Args:
        width: Number of inputs.
        classes: Number of classes.
    """

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.encoder, self.head, self.discriminator = make_encoder(width), nn.Linear(256, classes), make_discriminator()

    def training_step(self, batch: dict[str, list[Tensor]], *_: Any) -> Tensor:
        """Return the sum of both losses."""
        (ours, labels), (theirs,) = batch["source"], batch["target"]
        features = self.encoder(torch.cat([ours, theirs]))
        scores = self.discriminator(reverse(features))
        domains = torch.cat([torch.ones(len(ours)), torch.zeros(len(theirs))])
        loss = cross_entropy(self.head(features[: len(ours)]), labels)
        return loss + binary_cross_entropy_with_logits(scores, domains)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimiser of all networks."""
        return make_optimiser(self)


class Timing(Callback):
    """Calls the clock after every step.

    Args:
        clock: The clock.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def on_train_batch_end(self, *_: Any) -> None:
        """Call the clock."""
        self.clock()


def train(task: Task, clock: Clock) -> NDArray[np.int64]:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    loaders = {
        name: DataLoader(TensorDataset(*rows), BATCH, shuffle=True, drop_last=True)
        for name, rows in {"source": (task.source, task.labels), "target": (task.target,)}.items()
    }
    model = Dann(task.width, task.classes)
    trainer = Trainer(
        accelerator="cpu",
        max_steps=task.steps,
        max_epochs=-1,
        callbacks=[Timing(clock)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, CombinedLoader(loaders, "max_size_cycle"))
    return predict(model.encoder, model.head, task.target)


if __name__ == "__main__":
    run_job(train)
