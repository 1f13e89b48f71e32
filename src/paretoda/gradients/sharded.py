"""Parameters that FSDP2 has spread over the processes: only `.backward()` runs the hooks that gather and sum them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from paretoda.gradients.gram import Row


def sharded(tensors: Iterable[Tensor | None]) -> bool:
    """Whether any of them is one process's part of a larger one (a DTensor)."""
    return any(hasattr(tensor, "device_mesh") for tensor in tensors)


def local(tensor: Tensor) -> Tensor:
    """This process's part."""
    part: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part


def by_hooks(outputs: Sequence[Tensor], cotangents: Sequence[Tensor], parameters: Sequence[Tensor]) -> Row:
    """What `.backward()` adds to the parameters' `.grad`, which is then as before.

    Args:
        outputs: of the network, with its graph.
        cotangents: one for each.
        parameters: all that the outputs depend on.
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
