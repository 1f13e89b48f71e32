"""Less memory and time: activation checkpointing, kernels with their channels last, and compiled encoders."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from paretoda.models.backbones.backbone import ResidualBlock
from paretoda.models.batchnorm import batch_norms

_MODES = ("training", "track_running_stats")
_MEMORY = ("running_mean", "running_var", "num_batches_tracked")
_VERSIONS = 64
"""Largest number of compiled versions of one function; beyond it torch would silently stop compiling."""


def put_channels_last(network: nn.Module) -> None:
    """Store the kernels of a network with their channels last, which convolutions on a CPU are faster with.

    The numbers stay the same; sums may be rounded differently. Images follow the kernels.

    Args:
        network: Any network; one without convolutions is left as it is.

    Examples:
        >>> layer = nn.Conv2d(3, 8, 5)
        >>> put_channels_last(layer)
        >>> layer(torch.randn(2, 3, 9, 9)).is_contiguous(memory_format=torch.channels_last)
        True
    """
    layout: Any = {"memory_format": torch.channels_last}  # torch's types know .to() without it
    network.to(**layout)


def find_blocks(network: nn.Module) -> list[nn.Module]:
    """Residual blocks of our networks and all sequences of plain layers around them; none lies inside another."""
    children = list(network.children())
    plain = isinstance(network, nn.Sequential) and not any(list(child.children()) for child in children)
    if isinstance(network, ResidualBlock) or (plain and any(True for _ in network.parameters())):
        return [network]
    return [block for child in children for block in find_blocks(child)]


def checkpoint_activations(network: nn.Module, blocks: Sequence[nn.Module] | None = None) -> None:
    """Make the blocks keep only their inputs for the backward pass.

    Every backward pass computes a block once more, so several passes through one graph compute it several times.
    Dropout draws the same again; BatchNorm is in the state of the first pass and is not updated again.

    Args:
        network: Encoder.
        blocks: Modules of the encoder, each from one tensor to one; None: those of `find_blocks`.

    Raises:
        ValueError: The network has no blocks that are known.

    Examples:
        >>> encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> checkpoint_activations(encoder)
        >>> encoder(torch.randn(3, 4)).shape
        torch.Size([3, 2])
    """
    chosen = find_blocks(network) if blocks is None else list(blocks)
    if not chosen:
        raise ValueError(
            "the network has no blocks that are known: name its modules, from one tensor to one, in blocks"
        )
    for block in chosen:
        block.forward = MethodType(_forward, block)  # a copy of the block gets its own


def _forward(block: nn.Module, inputs: Tensor) -> Tensor:
    run = partial(type(block).forward, block)
    if not torch.is_grad_enabled():
        plain: Tensor = run(inputs)
        return plain
    found: Tensor = checkpoint(run, inputs, use_reentrant=False, context_fn=partial(_contexts, block))
    return found


def _contexts(block: nn.Module) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Contexts of the forward pass (none) and of the recomputation (BatchNorm as it is now)."""
    return nullcontext(), _FixedBatchNorm(block)


class _FixedBatchNorm:
    """Inside, BatchNorm layers have the modes of when this was made and work on copies of their running statistics.

    It is entered once for every backward pass through the block.
    """

    def __init__(self, block: nn.Module) -> None:
        self.modes = [(layer, [getattr(layer, name) for name in _MODES]) for layer in batch_norms(block)]
        self.before: list[list[object]] = []

    def __enter__(self) -> None:
        names = (*_MODES, *_MEMORY)
        self.before = [[getattr(layer, name) for name in names] for layer, _ in self.modes]
        for layer, modes in self.modes:
            copies = [None if (tensor := getattr(layer, name)) is None else tensor.clone() for name in _MEMORY]
            self._set(layer, [*modes, *copies])

    def __exit__(self, *_error: object) -> None:
        for (layer, _), values in zip(self.modes, self.before, strict=True):
            self._set(layer, values)

    def _set(self, layer: nn.Module, values: Sequence[object]) -> None:
        for name, value in zip((*_MODES, *_MEMORY), values, strict=True):
            setattr(layer, name, value)


class NoCompilerError(ValueError):
    """torch.compile does not work on this machine; the message says why and what to do."""


def check_compiler(backend: str = "inductor") -> None:
    """Compile a tiny function to see whether torch.compile works.

    Args:
        backend: Backend of torch.compile.

    Raises:
        NoCompilerError: It does not work; the message says why in one sentence.
    """
    try:
        torch.compile(_tiny, backend=backend)(torch.ones(2))
    except Exception as error:  # compilers fail in many ways: no g++, no headers, no space, no such backend
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise NoCompilerError(
            f"torch.compile does not work on this machine ({reason}); install a C++ compiler, or leave out --compile"
        ) from error


def _tiny(values: torch.Tensor) -> torch.Tensor:
    return values.sin() + 1


def compile_encoder(encoder: nn.Module, backend: str = "inductor") -> None:
    """Compile the encoder's calls, in training and in evaluation.

    Several backward passes go through one of its graphs, so no buffer may be donated to the first (a setting of the
    whole process); dropout draws the same as without a compiler.

    Args:
        encoder: Module; a copy of it, or a slice of a sequence, is not compiled.
        backend: Backend of torch.compile; "aot_eager" needs no compiler and brings no speed.
    """
    import torch._dynamo.config as dynamo  # noqa: PLC0415 - not before it is needed
    import torch._functorch.config as functorch  # noqa: PLC0415

    if hasattr(functorch, "donated_buffer"):
        functorch.donated_buffer = False
    if hasattr(dynamo, "recompile_limit"):  # training, guide and evaluation are separate code for every network
        dynamo.recompile_limit = max(dynamo.recompile_limit, _VERSIONS)
    options: dict[str, Any] | None = {"fallback_random": True} if backend == "inductor" else None
    # This is what Module.compile does, which would compile nothing for a plain Sequential (pytorch #150915).
    encoder._compiled_call_impl = torch.compile(encoder.forward, backend=backend, options=options)
