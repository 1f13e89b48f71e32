"""Activation checkpointing: a network's blocks forget what they computed, and compute it once more in the backward pass.

Set as a method of the blocks themselves: names of parameters, copies and evaluation are as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import MethodType

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from paretoda.models.batchnorm import batch_norms
from paretoda.models.deeplab import DilatedBottleneck
from paretoda.models.dilated import DilatedBlock
from paretoda.models.efficientnet import InvertedResidual
from paretoda.models.resnet import BasicBlock, Bottleneck

_BLOCKS = (BasicBlock, Bottleneck, DilatedBottleneck, DilatedBlock, InvertedResidual)


def blocks_of(network: nn.Module) -> list[nn.Module]:
    """The residual blocks of our networks, and all sequences of plain layers around them; none lies in another."""
    children = list(network.children())
    plain = isinstance(network, nn.Sequential) and not any(list(child.children()) for child in children)
    if isinstance(network, _BLOCKS) or (plain and any(True for _ in network.parameters())):
        return [network]
    return [block for child in children for block in blocks_of(child)]


def checkpoint_activations(network: nn.Module, blocks: Sequence[nn.Module] | None = None) -> None:
    """From now on the blocks keep only their inputs for the backward pass.

    Every backward pass computes a block once more, so several through one graph compute it as often. Dropout draws
    the same again; BatchNorm is as it was, and remembers nothing of it.

    Args:
        network: an encoder.
        blocks: which of its modules, each from one tensor to one; None: those of `blocks_of`.
    """
    chosen = blocks_of(network) if blocks is None else list(blocks)
    if not chosen:
        raise ValueError(
            "the network has no blocks that are known: name its modules, from one tensor to one, in blocks"
        )
    for block in chosen:
        block.forward = MethodType(_forward, block)  # type: ignore[method-assign]  # a copy of the block has its own


def _forward(block: nn.Module, inputs: Tensor) -> Tensor:
    run = partial(type(block).forward, block)
    if not torch.is_grad_enabled():
        plain: Tensor = run(inputs)
        return plain
    found: Tensor = checkpoint(run, inputs, use_reentrant=False, context_fn=partial(_contexts, block))
    return found


def _contexts(block: nn.Module) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """For the forward pass nothing; for the one in the backward pass, BatchNorm's modes as they are now."""
    return nullcontext(), _once_more(
        block, [(layer.training, layer.track_running_stats) for layer in batch_norms(block)]
    )


@contextmanager
def _once_more(block: nn.Module, modes: Sequence[tuple[bool, bool]]) -> Iterator[None]:
    """Inside, BatchNorm layers have these modes and work on copies of what they remember."""
    layers = batch_norms(block)
    names = ("training", "track_running_stats", "running_mean", "running_var", "num_batches_tracked")
    before = [[getattr(layer, name) for name in names] for layer in layers]
    try:
        for layer, mode in zip(layers, modes, strict=True):
            layer.training, layer.track_running_stats = mode
            for name in names[2:]:
                remembered = getattr(layer, name)
                setattr(layer, name, None if remembered is None else remembered.clone())
        yield
    finally:
        for layer, values in zip(layers, before, strict=True):
            for name, value in zip(names, values, strict=True):
                setattr(layer, name, value)
