"""BatchNorm: which batch statistics are used, and when the running statistics are updated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from paretoda.distributed.collectives import BatchSplit
from paretoda.distributed.layers import split_batch

_Statistics: TypeAlias = list[tuple[int, Tensor, Tensor]]
"""For each part: the number of values per channel, their mean and their mean squared deviation."""


def encode(
    encoder: nn.Module,
    source: Tensor,
    target: Tensor,
    *,
    bn: Literal["joint", "per-domain"],
    shares: BatchSplit | None = None,
) -> tuple[Tensor, Tensor]:
    """Features of both domains, source first; with several processes those of the joint batch.

    Args:
        encoder: Network from inputs (n, ...) to features (n, ...).
        source: Batch of the source.
        target: Batch of the target, of the same shape but for the number of rows.
        bn: "joint": one forward pass of both, whose results are views of one tensor; "per-domain": two forward passes,
            each with its own batch statistics, and only those of the target enter the running statistics.
        shares: Distribution of both domains over several processes, each of which passes its own samples.

    Returns:
        The features of the source and of the target.

    Raises:
        ValueError: `bn` is unknown.

    Examples:
        >>> encoder = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
        >>> source, target = encode(encoder, torch.randn(6, 4), torch.randn(5, 4), bn="per-domain")
        >>> source.shape, target.shape
        (torch.Size([6, 8]), torch.Size([5, 8]))
    """
    if bn == "joint":
        features = _forward(encoder, torch.cat([source, target]), shares)
        border = len(source) if shares is None else sum(shares.counts_of(0))
        return features[:border], features[border:]
    if bn == "per-domain":
        with frozen_statistics(encoder):
            source_features = _forward(encoder, source, None if shares is None else shares.part(0))
        return source_features, _forward(encoder, target, None if shares is None else shares.part(1))
    raise ValueError(f"bn must be 'joint' or 'per-domain', got {bn!r}")


def _forward(encoder: nn.Module, inputs: Tensor, shares: BatchSplit | None) -> Tensor:
    with split_batch(encoder, shares):
        features: Tensor = encoder(inputs)
    return features if shares is None else shares.gather_features(features)


def encode_held_out(encoder: nn.Module, inputs: Tensor, *, statistics: Literal["batch", "running"] = "batch") -> Tensor:
    """Features of held-out inputs; the running statistics stay as they are.

    Args:
        encoder: Network from inputs (n, ...) to features (n, ...).
        inputs: Held-out batch.
        statistics: "batch": normalise by those of the batch, as in training; "running": as in prediction.

    Returns:
        The features.

    Raises:
        ValueError: `statistics` is unknown.
    """
    if statistics not in ("batch", "running"):
        raise ValueError(f"statistics must be 'batch' or 'running', got {statistics!r}")
    with frozen_statistics(encoder) if statistics == "batch" else _running_statistics(encoder):
        features: Tensor = encoder(inputs)
    return features


def batch_norms(module: nn.Module) -> list[_BatchNorm]:
    """All BatchNorm layers of a network."""
    return [layer for layer in module.modules() if isinstance(layer, _BatchNorm)]


@contextmanager
def frozen_statistics(module: nn.Module) -> Iterator[None]:
    """Inside, BatchNorm layers in training mode normalise by the batch and update no running statistics.

    A layer that does not track is never handed its buffers, so they need no saving and keep their autograd version.

    Examples:
        >>> encoder = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
        >>> with frozen_statistics(encoder):
        ...     _ = encoder(torch.randn(6, 4))
        >>> int(encoder[1].num_batches_tracked)
        0
    """
    layers = batch_norms(module)
    before = [layer.track_running_stats for layer in layers]
    try:
        for layer in layers:
            layer.track_running_stats = False
        yield
    finally:
        for layer, tracked in zip(layers, before, strict=True):
            layer.track_running_stats = tracked


@contextmanager
def _running_statistics(module: nn.Module) -> Iterator[None]:
    """Inside, BatchNorm layers normalise by their running statistics, whatever the mode of the other layers.

    The layers work on copies: a later forward pass in training mode overwrites the running statistics without
    autograd's knowledge, and a backward pass through this forward pass would silently use the new values.
    """
    layers = batch_norms(module)
    before = [(layer.training, layer.running_mean, layer.running_var) for layer in layers]
    try:
        for layer in layers:
            layer.training = False
            layer.running_mean = None if layer.running_mean is None else layer.running_mean.clone()
            layer.running_var = None if layer.running_var is None else layer.running_var.clone()
        yield
    finally:
        for layer, (training, mean, variance) in zip(layers, before, strict=True):
            layer.training, layer.running_mean, layer.running_var = training, mean, variance


@contextmanager
def pooled_statistics(module: nn.Module) -> Iterator[None]:
    """Inside, every forward pass is of a part of one batch and normalised by the part; all parts count as one update.

    The running statistics are updated with the mean and the variance over all parts together, as each layer saw them.
    Layers that do not track statistics are left alone.
    """
    layers = [layer for layer in batch_norms(module) if layer.training and layer.track_running_stats]
    seen: list[_Statistics] = [[] for _ in layers]
    hooks = [
        layer.register_forward_pre_hook(partial(_record_statistics, found))
        for layer, found in zip(layers, seen, strict=True)
    ]
    try:
        with frozen_statistics(module):
            yield
    finally:
        for hook in hooks:
            hook.remove()
    for layer, found in zip(layers, seen, strict=True):
        if found:
            _update_running(layer, found)


@torch.no_grad()
def _record_statistics(found: _Statistics, _layer: nn.Module, inputs: tuple[Any, ...]) -> None:
    values: Tensor = inputs[0].detach()
    if values.dtype in (torch.float16, torch.bfloat16):
        values = values.float()
    variance, mean = torch.var_mean(values, dim=[0, *range(2, values.ndim)], correction=0)
    found.append((values.numel() // values.shape[1], mean, variance))


@torch.no_grad()
def _update_running(layer: _BatchNorm, found: _Statistics) -> None:
    count = sum(number for number, _, _ in found)
    mean = sum((mean * (number / count) for number, mean, _ in found), start=torch.zeros_like(found[0][1]))
    square = sum(
        (((part - mean) ** 2 + variance) * number for number, part, variance in found), start=torch.zeros_like(mean)
    )
    if layer.num_batches_tracked is not None:
        layer.num_batches_tracked.add_(1)
    momentum = layer.momentum
    share = 1 / float(layer.num_batches_tracked or 1) if momentum is None else momentum
    for running, new in ((layer.running_mean, mean), (layer.running_var, square / max(count - 1, 1))):
        if running is not None:
            running.mul_(1 - share).add_(new.to(running.dtype), alpha=share)
