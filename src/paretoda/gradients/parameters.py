"""Which tensors take part: parameters once each, in a fixed order, and how strongly the optimiser moves each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from torch import Tensor, nn
from torch.optim import Optimizer

Parameters: TypeAlias = nn.Module | Iterable[Tensor]
Metric: TypeAlias = Optimizer | Mapping[Tensor, float] | None
Voting: TypeAlias = Literal["all", "last"] | Parameters


def trainable_parameters(parameters: Parameters) -> list[Tensor]:
    """The leaf tensors that require a gradient, each once, in their order; frozen ones are left out."""
    if isinstance(parameters, Tensor):
        raise TypeError("expected a module or a list of parameters, got a single tensor: put it in a list")
    tensors = parameters.parameters() if isinstance(parameters, nn.Module) else parameters
    unique = {id(tensor): tensor for tensor in tensors if tensor.requires_grad}
    return list(unique.values())


def exclude(parameters: Sequence[Tensor], others: Iterable[Tensor]) -> list[Tensor]:
    """The parameters that are not among the others."""
    known = {id(tensor) for tensor in others}
    return [tensor for tensor in parameters if id(tensor) not in known]


def last_layer(parameters: Sequence[Tensor]) -> list[Tensor]:
    """The last weight matrix (or kernel) and whatever follows it: its bias, a normalisation's scale and shift."""
    start = len(parameters) - 1
    while start > 0 and parameters[start].ndim < 2:
        start -= 1
    return list(parameters[start:])


def voting_parameters(shared: Sequence[Tensor], voting: Voting) -> list[Tensor]:
    """The parameters whose gradients decide the weights."""
    if isinstance(voting, str):
        if voting not in ("all", "last"):
            raise ValueError(f"voting must be 'all', 'last' or parameters, got {voting!r}")
        return list(shared) if voting == "all" else last_layer(shared)
    chosen = trainable_parameters(voting)
    if not chosen or exclude(chosen, shared):
        raise ValueError("voting must name at least one shared parameter, and shared parameters only")
    return chosen


def rate_multipliers(parameters: Sequence[Tensor], metric: Metric) -> list[float]:
    """How far the step moves each tensor for the same gradient, relative to the one that moves most.

    With an optimiser these are its groups' learning rates. Inner products weighted by them tell how a loss changes
    along the step that is really taken.
    """
    if metric is None:
        return [1.0] * len(parameters)
    if isinstance(metric, Optimizer):
        rates = {id(p): float(group["lr"]) for group in metric.param_groups for p in group["params"]}
    else:
        rates = {id(p): float(rate) for p, rate in metric.items()}
    missing = [index for index, parameter in enumerate(parameters) if id(parameter) not in rates]
    if missing:
        raise ValueError(
            f"metric has no learning rate for {len(missing)} of {len(parameters)} voting parameters "
            f"(the first has shape {tuple(parameters[missing[0]].shape)}): give the optimiser that moves them"
        )
    found = [rates[id(parameter)] for parameter in parameters]
    if min(found) < 0:
        raise ValueError(f"metric has a negative learning rate, {min(found)}")
    largest = max(found)
    return [rate / largest for rate in found] if largest > 0 else [1.0] * len(found)
