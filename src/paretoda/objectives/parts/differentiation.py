"""Control of differentiation: networks with fixed or reversed parameters, and computations in full precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from paretoda.objectives.parts.discriminator import Statistics

Function = TypeVar("Function", bound=Callable[..., Tensor])


def call_frozen(network: nn.Module, rows: Tensor, statistics: Statistics) -> Tensor:
    """Call the network so that the result is differentiable in the rows only.

    Args:
        network: Network that is called as network(rows, statistics).
        rows: Inputs, shape (n, d).
        statistics: Statistics that its BatchNorm layers use.
    """
    fixed = {name: parameter.detach() for name, parameter in network.named_parameters()}
    answer: Tensor = functional_call(network, fixed, (rows, statistics))
    return answer


def call_reversed(network: nn.Module, rows: Tensor) -> Tensor:
    """Call the network so that the gradient in its parameters has the opposite sign; the result is the same.

    Args:
        network: Network that is called as network(rows).
        rows: Inputs, shape (n, d).

    Examples:
        >>> layer = nn.Linear(2, 1, bias=False)
        >>> call_reversed(layer, torch.ones(3, 2)).sum().backward()
        >>> layer.weight.grad
        tensor([[-3., -3.]])
    """
    mirrored = {name: 2 * parameter.detach() - parameter for name, parameter in network.named_parameters()}
    answer: Tensor = functional_call(network, mirrored, (rows,))
    return answer


def full_precision(function: Function) -> Function:
    """Decorate a function so that it is computed in single precision or better, regardless of autocast.

    Args:
        function: Function of one or more tensors, given by position, and of other arguments.
    """

    @wraps(function)
    def careful(*args: object, **kwargs: object) -> Tensor:
        device = next(arg.device for arg in args if isinstance(arg, Tensor))
        with torch.autocast(device.type, enabled=False):
            return function(*map(_at_least_single, args), **kwargs)

    return careful  # type: ignore[return-value]  # same arguments, same result


def _at_least_single(value: object) -> object:
    half = isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if half else value  # type: ignore[attr-defined]
