"""DANN as a loop of plain torch, written by hand."""

from __future__ import annotations

import numpy as np
import torch
from dann import BATCH, Clock, Task, make_discriminator, make_encoder, make_optimiser, predict, reverse, run_job
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy


def train(task: Task, clock: Clock) -> NDArray[np.int64]:
    encoder, head, discriminator = make_encoder(task.width), nn.Linear(256, task.classes), make_discriminator()
    optimiser = make_optimiser(encoder, head, discriminator)
    domains = torch.cat([torch.ones(BATCH), torch.zeros(BATCH)])
    for _ in range(task.steps):
        ours, theirs = (torch.randint(len(rows), (BATCH,)) for rows in (task.source, task.target))
        features = encoder(torch.cat([task.source[ours], task.target[theirs]]))
        scores = discriminator(reverse(features))
        losses = (
            cross_entropy(head(features[:BATCH]), task.labels[ours]),
            binary_cross_entropy_with_logits(scores, domains),
        )
        optimiser.zero_grad()
        torch.autograd.backward(losses)
        optimiser.step()
        clock()
    return predict(encoder, head, task.target)


if __name__ == "__main__":
    run_job(train)
