"""Parameters that FSDP2 has sharded over the processes: only `.backward()` runs the hooks that gather and sum them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from paretoda.gradients.gram import Row


@runtime_checkable
class Sharding(Protocol):
    """Methods of a module after `fully_shard`, as far as they are used here."""

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Set the divisor of the sum of all processes' gradients."""

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Set whether only sums are communicated."""

    def set_reshard_after_forward(self, reshard_after_forward: bool) -> None:
        """Set whether the module holds its own shard alone between forward and backward."""


def is_gathered(module: nn.Module | Iterable[Tensor]) -> bool:
    """Whether a module that FSDP shards has whole parameters at present, which no optimiser knows."""
    parts = module.modules() if isinstance(module, nn.Module) else ()
    return any(isinstance(part, Sharding) and not is_sharded(part.parameters()) for part in parts)


def is_sharded(tensors: Iterable[Tensor | None]) -> bool:
    """Whether any of the tensors is one process's part of a larger one (a DTensor)."""
    return any(hasattr(tensor, "device_mesh") for tensor in tensors)


def local_part(tensor: Tensor) -> Tensor:
    """Return this process's part."""
    part: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part


def backward_by_hooks(outputs: Sequence[Tensor], cotangents: Sequence[Tensor], parameters: Sequence[Tensor]) -> Row:
    """Return what `.backward()` adds to the parameters' `.grad`, which is restored afterwards.

    Args:
        outputs: Outputs of the network, with its graph.
        cotangents: One cotangent for each output.
        parameters: All parameters that the outputs depend on.
    """
    before = [parameter.grad for parameter in parameters]
    try:
        for parameter in parameters:
            parameter.grad = None
        torch.autograd.backward(list(outputs), list(cotangents))
        return [parameter.grad for parameter in parameters]
    finally:
        for parameter, gradient in zip(parameters, before, strict=True):
            parameter.grad = gradient
