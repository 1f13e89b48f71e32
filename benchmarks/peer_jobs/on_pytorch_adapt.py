"""DANN of pytorch-adapt: its hook in a plain loop over two data loaders, as its documentation begins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from dann import BATCH, Clock, Task, make_discriminator, make_encoder, make_optimiser, predict, run_job
from numpy.typing import NDArray
from pytorch_adapt.hooks import DANNHook
from pytorch_adapt.weighters import SumWeighter
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


def endless(*rows: Tensor) -> Iterator[list[Tensor]]:
    loader = DataLoader(TensorDataset(*rows), BATCH, shuffle=True, drop_last=True)
    while True:
        yield from loader


def train(task: Task, clock: Clock) -> NDArray[np.int64]:
    models = {"G": make_encoder(task.width), "C": nn.Linear(256, task.classes), "D": make_discriminator()}
    halves = {"src_domain_loss": 0.5, "target_domain_loss": 0.5}
    hook = DANNHook([make_optimiser(*models.values())], weighter=SumWeighter(weights=halves))
    domains = {"src_domain": torch.zeros(BATCH), "target_domain": torch.ones(BATCH)}
    batches = zip(endless(task.source, task.labels), endless(task.target), range(task.steps), strict=False)
    for (ours, labels), (theirs,), _ in batches:
        hook({**models, **domains, "src_imgs": ours, "src_labels": labels, "target_imgs": theirs})
        clock()
    return predict(models["G"], models["C"], task.target)


if __name__ == "__main__":
    run_job(train)
