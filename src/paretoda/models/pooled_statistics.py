"""BatchNorm's running statistics of a batch that goes through the network in parts: remembered once, for all of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from paretoda.models.batchnorm import batch_norms, frozen_statistics

_Seen: TypeAlias = list[tuple[int, Tensor, Tensor]]
"""For each part: how many values a channel had, their mean, their mean square deviation."""


@contextmanager
def pooled_statistics(module: nn.Module) -> Iterator[None]:
    """Inside, every forward is of a part of one batch and normalised by the part; at the end all count as one update.

    What is remembered are the mean and the variance over all parts together, as each layer saw them. Layers that
    remember nothing anyway stay so.
    """
    layers = [layer for layer in batch_norms(module) if layer.training and layer.track_running_stats]
    seen: list[_Seen] = [[] for _ in layers]
    hooks = [layer.register_forward_pre_hook(partial(_look, found)) for layer, found in zip(layers, seen, strict=True)]
    try:
        with frozen_statistics(module):
            yield
    finally:
        for hook in hooks:
            hook.remove()
    for layer, found in zip(layers, seen, strict=True):
        if found:
            _remember(layer, found)


@torch.no_grad()
def _look(found: _Seen, _layer: nn.Module, inputs: tuple[Any, ...]) -> None:
    values: Tensor = inputs[0].detach()
    if values.dtype in (torch.float16, torch.bfloat16):
        values = values.float()
    variance, mean = torch.var_mean(values, dim=[0, *range(2, values.ndim)], correction=0)
    found.append((values.numel() // values.shape[1], mean, variance))


@torch.no_grad()
def _remember(layer: _BatchNorm, found: _Seen) -> None:
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
