"""The forward pass of a step: features of both domains and the guide, whole, in micro-batches, or over processes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from paretoda.distributed.collectives import BatchSplit, Processes
from paretoda.distributed.layers import split_batch
from paretoda.gradients import MicroBatches
from paretoda.models.batchnorm import encode, held_out
from paretoda.types import Batch, Target

if TYPE_CHECKING:
    from paretoda.training.step import Step

Pass: TypeAlias = Tensor | MicroBatches
"""One forward pass through the encoder: its features, or the micro-batches that make them again."""


@dataclass(frozen=True, eq=False)
class Encoding:
    """How an encoder is run.

    Args:
        encoder: inputs to features.
        bn: which inputs are one batch to BatchNorm.
        last: only the last layer votes, so that the guide's body needs no graph.
        parts: micro-batches of a batch.
    """

    encoder: nn.Module
    bn: Literal["joint", "per-domain"]
    last: bool
    parts: int

    def domains(self, batch: Batch, shares: BatchSplit | None) -> tuple[Tensor, Tensor, list[Pass]]:
        """The features of source and target, and the passes that made them.

        Args:
            batch: of this process.
            shares: how both domains are spread over several processes; not with micro-batches.
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
        """The features of held-out inputs, and the pass that made them; BatchNorm remembers nothing of it.

        Args:
            inputs: of the guide.
            batch_size: of a domain: the guide's micro-batches have no more rows than its.
        """
        if self.parts > 1:
            rows = max(1, batch_size // self.parts)
            parts = min(-(-len(inputs) // rows), max(1, len(inputs) // min(2, rows)))  # one row has no variance
            found = MicroBatches(self.encoder, inputs, parts, remember=False, keep_last=self.last)
            return found.features, found
        features = self._held_out(inputs)
        return features, features

    def _held_out(self, inputs: Tensor) -> Tensor:
        if self.last and isinstance(self.encoder, nn.Sequential) and len(self.encoder) > 1:
            with torch.no_grad():
                below = held_out(self.encoder[:-1], inputs)
            return held_out(self.encoder[-1], below)
        return held_out(self.encoder, inputs)

    def _parts(self, *inputs: Tensor, remember: bool = True) -> MicroBatches:
        return MicroBatches(self.encoder, inputs, self.parts, remember=remember, keep_last=self.last)


def make_batch_split(step: Step, *counts: int) -> BatchSplit | None:
    """How a pass of so many own samples (of each part) is spread; None where there is one process.

    All processes must draw the same numbers, or their heads would drift apart without a word: that is checked here.
    """
    if step.processes.size == 1:
        return None
    *rows, chance = zip(*step.processes.gather_numbers(*counts, _chance(step.device)), strict=True)
    if len(set(chance)) > 1:
        raise ValueError(
            "the processes have drawn different random numbers: seed them alike before every step, and let the "
            "encoder draw nothing but by torch's Dropout layers"
        )
    return BatchSplit(step.processes, tuple(zip(*rows, strict=True)), step.sync_bn)


def _chance(device: torch.device) -> int:
    """A number that tells two states of torch's generators apart."""
    state = torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
    return zlib.crc32(state.numpy().tobytes())


def gather_domain_rows(shares: BatchSplit | None, *tensors: tuple[Tensor, int]) -> list[Tensor]:
    """These tensors of all processes, each given with the part of the batch that it belongs to."""
    if shares is None:
        return [tensor for tensor, _ in tensors]
    return [shares.processes.gather(tensor, shares.counts_of(part)) for tensor, part in tensors]


@torch.no_grad()
def average_statistics(encoder: nn.Module, processes: Processes) -> None:
    """What BatchNorm layers remember becomes the mean over the processes; unsynchronised ones remember their own."""
    layers = [layer for layer in encoder.modules() if isinstance(layer, _BatchNorm)]
    buffers = [b for layer in layers for b in (layer.running_mean, layer.running_var) if b is not None]
    if processes.size == 1 or not buffers:
        return
    flat = processes.sum(torch.cat([buffer.reshape(-1) for buffer in buffers])) / processes.size
    for buffer, piece in zip(buffers, flat.split_with_sizes([buffer.numel() for buffer in buffers]), strict=True):
        buffer.copy_(piece.view(buffer.shape))


def encode_guide(step: Step, batch: Batch) -> tuple[Target, Pass]:
    """The held-out samples of the batch as the network sees them now, with several processes those of all; its pass."""
    if batch.guide is None or batch.guide_index is None:
        raise ValueError("the scheme follows a guide, but the batch has no held-out target samples")
    shares = make_batch_split(step, len(batch.guide))
    with split_batch(step.model.encoder, shares):
        features, made = step.encoding.held_out(batch.guide, len(batch.target))
    if shares is not None:
        features = made = shares.gather_features(features)
    (index,) = gather_domain_rows(shares, (batch.guide_index, 0))
    return Target(features, step.model.head(features), index, batch.guide), made
