"""Layers that depend on more than one sample, when a batch is split over several processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from paretoda.distributed.collectives import BatchSplit, Processes

_SPATIAL = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
DROPOUTS = (nn.Dropout, *_SPATIAL)


@contextmanager
def shared_dropout(module: nn.Module, total: int, rows: Tensor) -> Iterator[None]:
    """Inside, dropout layers see some rows of a batch, but draw for all of it and use the draws of these rows.

    Starting from the same random state, every part then drops what the whole batch would have dropped there, and leaves
    the random state as the whole batch would have left it.

    Args:
        module: Module whose layers are changed; those in evaluation mode draw nothing.
        total: Number of rows of the whole batch.
        rows: Positions of the part in it.
    """
    layers = [layer for layer in module.modules() if isinstance(layer, DROPOUTS) and layer.training and layer.p > 0]
    try:
        for layer in layers:
            layer.forward = partial(_draw_dropout, layer, total, rows)  # type: ignore[method-assign]
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)


def _draw_dropout(layer: nn.Module, total: int, rows: Tensor, part: Tensor) -> Tensor:
    if part.shape[0] != len(rows):  # not rows of the batch, so the others are unknown
        own: Tensor = type(layer).forward(layer, part)
        return own
    inner = part.shape[1:]
    if isinstance(layer, _SPATIAL):  # one draw for each channel
        inner = torch.Size([inner[0], *(1 for _ in inner[1:])])
    whole = torch.ones(total, *inner, dtype=part.dtype, device=part.device)
    drawn: Tensor = type(layer).forward(layer, whole)
    return part * drawn[rows]


def check_layers(encoder: nn.Module) -> None:
    """Raise a `ValueError` where a layer cannot be split over several processes."""
    for layer in encoder.modules():
        if isinstance(layer, _DropoutNd) and not isinstance(layer, DROPOUTS):
            raise ValueError(f"{type(layer).__name__} cannot be spread over several processes; take nn.Dropout")


@contextmanager
def split_batch(encoder: nn.Module, shares: BatchSplit | None) -> Iterator[None]:
    """Inside, the encoder's layers act on this process's share as they would on the joint batch.

    Only their `forward` is replaced for the time being, so copies, files and other users of the layers are not
    affected.

    Args:
        encoder: The encoder.
        shares: How the batch is split; None or a single process changes nothing.
    """
    if shares is None or shares.processes.size == 1:
        yield
        return
    layers = [layer for layer in encoder.modules() if isinstance(layer, _BatchNorm) and shares.synchronised]
    with shared_dropout(encoder, shares.total, shares.rows()):
        try:
            for layer in layers:
                layer.__dict__["forward"] = partial(_normalise, layer, shares.processes)
            yield
        finally:
            for layer in layers:
                layer.__dict__.pop("forward", None)


def _normalise(layer: _BatchNorm, processes: Processes, inputs: Tensor) -> Tensor:
    if not layer.training and layer.running_mean is not None:
        return type(layer).forward(layer, inputs)
    output, mean, variance, count = _Normalisation.apply(  # type: ignore[no-untyped-call]
        inputs, layer.weight, layer.bias, layer.eps, processes
    )
    if layer.training and layer.track_running_stats and layer.running_mean is not None:
        _update_statistics(layer, mean, variance, int(count))
    normalised: Tensor = output
    return normalised


@torch.no_grad()
def _update_statistics(layer: _BatchNorm, mean: Tensor, variance: Tensor, count: int) -> None:
    assert layer.running_mean is not None
    assert layer.running_var is not None
    factor = layer.momentum
    if layer.num_batches_tracked is not None:
        layer.num_batches_tracked.add_(1)
        factor = 1 / float(layer.num_batches_tracked) if factor is None else factor
    rate = 0.0 if factor is None else factor
    layer.running_mean.lerp_(mean.to(layer.running_mean.dtype), rate)
    layer.running_var.lerp_((variance * count / (count - 1)).to(layer.running_var.dtype), rate)


class _Normalisation(torch.autograd.Function):
    """Batch normalisation over the samples of all processes: (x - mean) / sqrt(variance + eps) · weight + bias."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, processes: Processes
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        x = inputs.float() if inputs.dtype in (torch.float16, torch.bfloat16) else inputs
        mean, variance, count = _statistics(x, processes)
        if count < 2:
            raise ValueError(f"BatchNorm needs more than one value per channel in training, got {tuple(inputs.shape)}")
        scale = torch.rsqrt(variance + eps)
        ctx.save_for_backward(inputs, weight, mean, scale)
        ctx.count, ctx.processes = count, processes
        output = (x - _per_channel(mean, x)) * _per_channel(scale if weight is None else scale * weight, x)
        output = output if bias is None else output + _per_channel(bias, x)
        total = torch.tensor(count)
        ctx.mark_non_differentiable(mean, variance, total)
        return output.to(inputs.dtype), mean, variance, total

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None, None]:
        inputs, weight, mean, scale = ctx.saved_tensors
        x, slope = inputs.to(mean.dtype), cotangents[0].to(mean.dtype)
        normal = (x - _per_channel(mean, x)) * _per_channel(scale, x)
        axes = _axes(x)
        # Gradients of this process's samples; like those of every shared parameter, they are summed later.
        own = torch.stack([slope.sum(axes), (slope * normal).sum(axes)])
        found = None
        if ctx.needs_input_grad[0]:
            means = ctx.processes.sum(own.clone()) / ctx.count
            factor = scale if weight is None else scale * weight
            found = (slope - _per_channel(means[0], x) - normal * _per_channel(means[1], x)) * _per_channel(factor, x)
            found = found.to(inputs.dtype)
        return found, None if weight is None else own[1], own[0] if ctx.needs_input_grad[2] else None, None, None


def _statistics(x: Tensor, processes: Processes) -> tuple[Tensor, Tensor, int]:
    """Return mean and variance of every channel over all processes, and the number of values."""
    axes, count = _axes(x), x.numel() // x.shape[1]
    mean = x.sum(axes) / max(count, 1)
    squares = (x - _per_channel(mean, x)).square().sum(axes)
    rows = processes.gather(torch.cat([mean, squares, mean.new_tensor([count])])[None], [1] * processes.size)
    counts, total = rows[:, -1:], int(rows[:, -1].sum())
    means, all_squares = rows[:, : len(mean)], rows[:, len(mean) : -1]
    joint = (counts * means).sum(0) / total
    # Chan's sum of squares avoids differences of large numbers.
    return joint, (all_squares + counts * (means - joint).square()).sum(0) / total, total


def _axes(x: Tensor) -> list[int]:
    return [axis for axis in range(x.ndim) if axis != 1]


def _per_channel(channels: Tensor, x: Tensor) -> Tensor:
    return channels.view(1, -1, *(1 for _ in x.shape[2:]))
