"""Whole sets as the model sees them now."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from paretoda.data import DomainPair
from paretoda.domains import Batch, Model, Snapshot
from paretoda.evaluation.predictions import domain_outputs


def take_snapshot(pair: DomainPair, model: Model, device: torch.device, batch_size: int = 256) -> Snapshot:
    """Features and logits of all four parts, in evaluation mode; labels of the source only."""

    def target_inputs() -> Iterator[Tensor]:
        for inputs in pair.whole("target", batch_size):
            yield inputs.to(device)

    return Snapshot(
        source=domain_outputs(model, pair.whole("source", batch_size), pair.labels_of("source"), device=device),
        held_out_source=domain_outputs(
            model, pair.whole("held-out-source", batch_size), pair.labels_of("held-out-source"), device=device
        ),
        target=domain_outputs(model, pair.whole("target", batch_size), device=device),
        held_out_target=domain_outputs(model, pair.whole("held-out-target", batch_size), device=device),
        model=model,
        target_inputs=target_inputs,
    )


def on_device(batch: Batch, device: torch.device) -> Batch:
    """The batch where the model is."""
    if device.type == "cpu":
        return batch
    guide = None if batch.guide is None else batch.guide.to(device, non_blocking=True)
    guide_index = None if batch.guide_index is None else batch.guide_index.to(device, non_blocking=True)
    return Batch(
        source=batch.source.to(device, non_blocking=True),
        labels=batch.labels.to(device, non_blocking=True),
        target=batch.target.to(device, non_blocking=True),
        guide=guide,
        source_index=batch.source_index.to(device, non_blocking=True),
        target_index=batch.target_index.to(device, non_blocking=True),
        guide_index=guide_index,
    )
