"""Parameters that FSDP2 has spread over the processes: only `.backward()` runs the hooks that gather and sum them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from paretoda.gradients.gram import Row


@runtime_checkable
class Sharding(Protocol):
    """What `fully_shard` makes of a module, as far as it is used here."""

    def set_gradient_divide_factor(self, factor: float) -> None:
        """By what the sum of all processes' gradients is divided."""

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Whether nothing but sums travels."""

    def set_reshard_after_forward(self, reshard_after_forward: bool) -> None:
        """Whether the module has its own part alone between forward and backward."""


def is_gathered(module: nn.Module | Iterable[Tensor]) -> bool:
    """Whether a module that FSDP shards has whole parameters at present, which no optimiser knows."""
    parts = module.modules() if isinstance(module, nn.Module) else ()
    return any(isinstance(part, Sharding) and not is_sharded(part.parameters()) for part in parts)


def is_sharded(tensors: Iterable[Tensor | None]) -> bool:
    """Whether any of them is one process's part of a larger one (a DTensor)."""
    return any(hasattr(tensor, "device_mesh") for tensor in tensors)


def local_part(tensor: Tensor) -> Tensor:
    """This process's part."""
    part: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part


def backward_by_hooks(outputs: Sequence[Tensor], cotangents: Sequence[Tensor], parameters: Sequence[Tensor]) -> Row:
    """What `.backward()` adds to the parameters' `.grad`, which is then as before.

    Args:
        outputs: Of the network, with its graph.
        cotangents: One for each.
        parameters: All that the outputs depend on.
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
