"""Whole sets as the model sees them now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from paretoda.data import DomainPair
from paretoda.data.pair import Part
from paretoda.data.segmentation import ScenePair
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.evaluation.overlap import pixel_snapshot_rows
from paretoda.evaluation.predictions import predict
from paretoda.types import Batch, Model, Snapshot, Source, Target

_LABELLED: tuple[Part, Part] = ("source", "held-out-source")
_UNLABELLED: tuple[Part, Part] = ("target", "held-out-target")
_SCENES = 8
"""Images at a time in segmentation."""
_MOST = 200
"""Images of a part, with 32 pixels each: as many rows as a small set of images has."""
_PIXELS = 32


def take_snapshot(
    pair: DomainPair | ScenePair,
    model: Model,
    device: torch.device,
    batch_size: int = 256,
    processes: Processes = SINGLE_PROCESS,
) -> Snapshot:
    """Features and logits of all four parts, in evaluation mode; labels of the source only. Of scenes, some pixels.

    Args:
        pair: the data.
        model: already on the device.
        device: where the batches are sent.
        batch_size: of the passes.
        processes: several that all ask for it: each passes a share of every part. Of scenes, each passes all.
    """
    if isinstance(pair, ScenePair):
        return _of_scenes(pair, model, device)

    def target_inputs() -> Iterator[Tensor]:
        for inputs in pair.whole("target", batch_size):
            yield inputs.to(device)

    def outputs(part: Part) -> tuple[Tensor, Tensor, Tensor]:
        whom = processes if len(pair.places(part)) >= processes.size else SINGLE_PROCESS
        own = predict(model, pair.whole(part, batch_size, whom), device=device)
        features, logits = (whom.gather_rows(rows) for rows in own)
        return features, logits, torch.arange(len(features))

    source, held_out_source = (Source(*outputs(part), labels=pair.labels_of(part)) for part in _LABELLED)
    target, held_out_target = (Target(*outputs(part)) for part in _UNLABELLED)
    return Snapshot(source, held_out_source, target, held_out_target, model, target_inputs)


def _of_scenes(pair: ScenePair, model: Model, device: torch.device) -> Snapshot:
    def target_inputs() -> Iterator[Tensor]:
        for inputs in pair.whole("target", _SCENES):
            yield inputs.to(device)

    how: dict[str, Any] = {"per_image": _PIXELS, "device": device}
    source, held_out_source = (
        pixel_snapshot_rows(
            model,
            pair.whole(part, _SCENES, _MOST),
            pair.labels_in_batches(part, _SCENES, _MOST),
            seed=number,
            **how,
        )
        for number, part in enumerate(_LABELLED)
    )
    target, held_out_target = (
        pixel_snapshot_rows(model, pair.whole(part, _SCENES, _MOST), seed=number, **how)
        for number, part in enumerate(_UNLABELLED, len(_LABELLED))
    )
    return Snapshot(source, held_out_source, target, held_out_target, model, target_inputs)


def pin_batch(batch: Batch, device: torch.device) -> Batch:
    """The batch in memory that a GPU copies from while it computes; as it is where there is no GPU."""
    if device.type != "cuda":
        return batch
    held: dict[str, Any] = {
        name: None if tensor is None else tensor.pin_memory() for name, tensor in vars(batch).items()
    }
    return Batch(**held)


def move_batch(batch: Batch, device: torch.device) -> Batch:
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
