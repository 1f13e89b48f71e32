"""Control of differentiation: networks as fixed functions, and computations that need full precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from paretoda.objectives.parts.discriminator import Statistics


def frozen(network: nn.Module, rows: Tensor, statistics: Statistics) -> Tensor:
    """What the network answers, differentiable in the rows only.

    Args:
        network: called as network(rows, statistics).
        rows: shape (n, d).
        statistics: of its BatchNorm layers.
    """
    fixed = {name: parameter.detach() for name, parameter in network.named_parameters()}
    answer: Tensor = functional_call(network, fixed, (rows, statistics))
    return answer


Function = TypeVar("Function", bound=Callable[..., Tensor])


def full_precision(function: Function) -> Function:
    """The same function, computed in single precision or better, whatever autocast says.

    Args:
        function: of one tensor or more, by position, and of other things.
    """

    @wraps(function)
    def careful(*args: object, **kwargs: object) -> Tensor:
        device = next(arg.device for arg in args if isinstance(arg, Tensor))
        with torch.autocast(device.type, enabled=False):
            return function(*map(_at_least_single, args), **kwargs)

    return careful  # type: ignore[return-value]  # same arguments, same answer


def _at_least_single(value: object) -> object:
    half = isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if half else value  # type: ignore[attr-defined]
