"""The forward pass of a step: features of both domains and the guide, whole, in micro-batches, or over processes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from paretoda.distributed.collectives import BatchSplit, Processes
from paretoda.distributed.layers import split_batch
from paretoda.gradients import MicroBatches
from paretoda.models.batchnorm import encode, encode_held_out
from paretoda.types import Batch, LabelledTarget, Target

if TYPE_CHECKING:
    from paretoda.training.step import Step

Pass: TypeAlias = Tensor | MicroBatches
"""One forward pass through the encoder: its features, or the micro-batches that make them again."""


@dataclass(frozen=True, eq=False)
class Encoding:
    """How an encoder is run.

    Args:
        encoder: Inputs -> features.
        bn: Which inputs BatchNorm treats as one batch.
        last: Whether only the last layer votes, so that the guide needs no graph below it.
        parts: Number of micro-batches of a batch.
    """

    encoder: nn.Module
    bn: Literal["joint", "per-domain"]
    last: bool
    parts: int

    def domains(self, batch: Batch, shares: BatchSplit | None) -> tuple[Tensor, Tensor, list[Pass]]:
        """Return the features of source and target, and the passes that made them.

        Args:
            batch: Batch of this process.
            shares: How both domains are split over several processes; not with micro-batches.
        """
        if self.parts == 1:
            source, target = encode(self.encoder, batch.source, batch.target, bn=self.bn, shares=shares)
            return source, target, [source, target]
        if self.bn == "joint":
            both = self._parts(batch.source, batch.target)
            source, target = both.split()
            return source, target, [both]
        own, other = self._parts(batch.source, remember=False), self._parts(batch.target)
        return own.features, other.features, [own, other]

    def held_out(self, inputs: Tensor, batch_size: int) -> tuple[Tensor, Pass]:
        """Return the features of held-out inputs and their pass, without changing BatchNorm's running statistics.

        Args:
            inputs: Inputs of the guide.
            batch_size: Samples of a domain; the guide's micro-batches have no more rows than the domain's.
        """
        if self.parts > 1:
            rows = max(1, batch_size // self.parts)
            parts = min(-(-len(inputs) // rows), max(1, len(inputs) // min(2, rows)))  # a single row has no variance
            found = MicroBatches(self.encoder, inputs, parts, remember=False, keep_last=self.last)
            return found.features, found
        features = self._held_out(inputs)
        return features, features

    def changed(self, inputs: Tensor) -> tuple[Tensor, Pass]:
        """Return the features of changed inputs and their pass; BatchNorm's running statistics stay as they are."""
        features = encode_held_out(self.encoder, inputs)
        return features, features

    def _held_out(self, inputs: Tensor) -> Tensor:
        if self.last and isinstance(self.encoder, nn.Sequential) and len(self.encoder) > 1:
            with torch.no_grad():
                below = encode_held_out(self.encoder[:-1], inputs)
            return encode_held_out(self.encoder[-1], below)
        return encode_held_out(self.encoder, inputs)

    def _parts(self, *inputs: Tensor, remember: bool = True) -> MicroBatches:
        return MicroBatches(self.encoder, inputs, self.parts, remember=remember, keep_last=self.last)


def join_labelled(batch: Batch) -> Batch:
    """Return the batch with its labelled target samples behind the unlabelled ones, to be encoded with them."""
    if batch.labelled is None:
        return batch
    return replace(batch, target=torch.cat([batch.target, batch.labelled]))


def make_batch_split(step: Step, *counts: int) -> BatchSplit | None:
    """Return how a pass of so many own samples (of each part) is split; None with a single process.

    Raises:
        ValueError: The processes have drawn different random numbers, so that their heads would silently diverge.
    """
    if step.processes.size == 1:
        return None
    *rows, checksums = zip(*step.processes.gather_numbers(*counts, _rng_checksum(step.device)), strict=True)
    if len(set(checksums)) > 1:
        raise ValueError(
            "the processes have drawn different random numbers: seed them alike before every step, and let the "
            "encoder draw nothing but by torch's Dropout layers"
        )
    return BatchSplit(step.processes, tuple(zip(*rows, strict=True)), step.sync_bn)


def _rng_checksum(device: torch.device) -> int:
    """Return a number that distinguishes states of torch's generators."""
    state = torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
    return zlib.crc32(state.numpy().tobytes())


def gather_domain_rows(shares: BatchSplit | None, *tensors: tuple[Tensor, int]) -> list[Tensor]:
    """Return these tensors of all processes, each given with the part of the batch that it belongs to."""
    if shares is None:
        return [tensor for tensor, _ in tensors]
    return [shares.processes.gather(tensor, shares.counts_of(part)) for tensor, part in tensors]


@torch.no_grad()
def average_statistics(encoder: nn.Module, processes: Processes) -> None:
    """Average the statistics of unsynchronised BatchNorm layers over the processes."""
    layers = [layer for layer in encoder.modules() if isinstance(layer, _BatchNorm)]
    buffers = [b for layer in layers for b in (layer.running_mean, layer.running_var) if b is not None]
    if processes.size == 1 or not buffers:
        return
    flat = processes.sum(torch.cat([buffer.reshape(-1) for buffer in buffers])) / processes.size
    for buffer, piece in zip(buffers, flat.split_with_sizes([buffer.numel() for buffer in buffers]), strict=True):
        buffer.copy_(piece.view(buffer.shape))


def encode_guide(step: Step, batch: Batch) -> tuple[Target, Pass]:
    """Return the held-out samples of the batch as the network sees them, of all processes, and their pass.

    Raises:
        ValueError: The batch has no held-out samples.
    """
    if batch.guide is None or batch.guide_index is None:
        raise ValueError("the scheme follows a guide, but the batch has no held-out target samples")
    shares = make_batch_split(step, len(batch.guide))
    with split_batch(step.model.encoder, shares):
        features, made = step.encoding.held_out(batch.guide, len(batch.target))
    if shares is not None:
        features = made = shares.gather_features(features)
    (index,) = gather_domain_rows(shares, (batch.guide_index, 0))
    logits = step.model.head(features)
    if batch.guide_labels is not None:
        return LabelledTarget(features, logits, index, batch.guide, labels=batch.guide_labels), made
    return Target(features, logits, index, batch.guide), made
