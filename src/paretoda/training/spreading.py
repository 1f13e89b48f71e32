"""A step over several processes: each encodes its own samples, and all see the joint batch."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from paretoda.gradients.sharded import Sharding, sharded
from paretoda.models.spread import check_layers
from paretoda.processes import Processes, Shares
from paretoda.training.strategy import Strategy

if TYPE_CHECKING:
    from paretoda.training.step import Step


def check_spread(step: Step) -> None:
    """Raise a ValueError that says what to do where this step cannot be taken by its processes; prepare FSDP."""
    several = step.processes.size > 1
    if several and isinstance(step.scheme, Strategy) and not getattr(step.scheme, "spreads", False):
        name = type(step.scheme).__name__.lower()
        raise ValueError(f"the scheme {name!r} trains in one process only: start it without torchrun")
    if several and step.accumulate > 1:
        raise ValueError("micro-batches are for one process: leave out accumulate, or start it without torchrun")
    if several:
        check_layers(step.model.encoder)
    if step.clip is not None and sharded(step.model.parameters()):
        raise ValueError("the gradient of a sharded encoder (FSDP) cannot be clipped here: leave out clip")
    for part in step.model.encoder.modules():
        if isinstance(part, Sharding):
            part.set_gradient_divide_factor(1.0)  # its own choice is the mean; our losses are of the joint batch
            part.set_force_sum_reduction_for_comms(True)  # gloo has no other
            part.set_reshard_after_forward(True)  # or the optimiser's parameters are not those of the module


def shares_of(step: Step, *counts: int) -> Shares | None:
    """How a pass of so many own samples (of each part) is spread; None where there is one process.

    All processes must draw the same numbers, or their heads would drift apart without a word: that is checked here.
    """
    if step.processes.size == 1:
        return None
    *rows, chance = zip(*step.processes.numbers(*counts, _chance(step.device)), strict=True)
    if len(set(chance)) > 1:
        raise ValueError(
            "the processes have drawn different random numbers: seed them alike before every step, and let the "
            "encoder draw nothing but by torch's Dropout layers"
        )
    return Shares(step.processes, tuple(zip(*rows, strict=True)), step.sync_bn)


def _chance(device: torch.device) -> int:
    """A number that tells two states of torch's generators apart."""
    state = torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
    return zlib.crc32(state.numpy().tobytes())


def joined_rows(shares: Shares | None, *tensors: tuple[Tensor, int]) -> list[Tensor]:
    """These tensors of all processes, each given with the part of the batch that it belongs to."""
    if shares is None:
        return [tensor for tensor, _ in tensors]
    return [shares.processes.gather(tensor, shares.of_part(part)) for tensor, part in tensors]


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
