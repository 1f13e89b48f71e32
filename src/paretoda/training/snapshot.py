"""Whole sets as the model sees them now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from paretoda.data.pair import Pair
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.evaluation.predictions import evaluation_mode
from paretoda.types import Batch, Model, Snapshot


def take_snapshot(pair: Pair, model: Model, device: torch.device, processes: Processes = SINGLE_PROCESS) -> Snapshot:
    """Return features and logits of all four parts in evaluation mode, with labels of the source only.

    What a row of a snapshot is, a sample or a pixel of an image, is the pair's to say.

    Args:
        pair: Source and target.
        model: Model, already on the device.
        device: Device that the batches are sent to; the results are on the CPU.
        processes: Processes that all ask for the snapshot and may share the work.

    Returns:
        The snapshot, the same in every process.

    Examples:
        >>> import numpy as np
        >>> from torch import nn
        >>> from paretoda.data import make_pair
        >>> pair = make_pair((np.eye(40, 3), np.arange(40) % 2), np.eye(30, 3))
        >>> snapshot = take_snapshot(pair, Model(nn.Linear(3, 4), nn.Linear(4, 2)), torch.device("cpu"))
        >>> snapshot.target.features.shape, snapshot.held_out_source.labels.shape
        (torch.Size([27, 4]), torch.Size([4]))
    """

    def forward(inputs: Tensor) -> tuple[Tensor, Tensor]:
        features = model.encoder(inputs.to(device))
        return features, model.head(features)

    def read_inputs(part: Literal["source", "target"]) -> Iterator[Tensor]:
        for inputs in pair.inputs(part, pair.snapshot_batch):
            yield inputs.to(device)

    with evaluation_mode(model):
        return Snapshot(
            pair.source_rows("source", forward, processes),
            pair.source_rows("held-out-source", forward, processes),
            pair.target_rows("target", forward, processes),
            pair.target_rows("held-out-target", forward, processes),
            model,
            partial(read_inputs, "target"),
            partial(read_inputs, "source"),
            pair.labelled_samples(),
            pair.held_out_labelled(forward),
        )


def pin_batch(batch: Batch, device: torch.device) -> Batch:
    """Return the batch in page-locked memory, which a GPU copies from while it computes; unchanged without a GPU."""
    if device.type != "cuda":
        return batch
    return replace(batch, **{name: tensor.pin_memory() for name, tensor in batch.tensors().items()})


def move_batch(batch: Batch, device: torch.device) -> Batch:
    """Return the batch on the model's device."""
    if device.type == "cpu":
        return batch
    return replace(batch, **{name: tensor.to(device, non_blocking=True) for name, tensor in batch.tensors().items()})
