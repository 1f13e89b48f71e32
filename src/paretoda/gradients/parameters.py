"""Parameters that take part: each once, in a fixed order, and how far the optimiser moves each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Literal, TypeAlias

from torch import Tensor, nn
from torch.optim import Optimizer

Parameters: TypeAlias = nn.Module | Iterable[Tensor]
Metric: TypeAlias = Optimizer | Mapping[Tensor, float] | None
Voting: TypeAlias = Literal["all", "last"] | Parameters


def trainable_parameters(parameters: Parameters) -> list[Tensor]:
    """Leaf tensors that require a gradient, each once, in their order; frozen ones are left out.

    Raises:
        TypeError: A single tensor was given.
    """
    if isinstance(parameters, Tensor):
        raise TypeError("expected a module or a list of parameters, got a single tensor: put it in a list")
    tensors = parameters.parameters() if isinstance(parameters, nn.Module) else parameters
    unique = {id(tensor): tensor for tensor in tensors if tensor.requires_grad}
    return list(unique.values())


def find_parameters(features: Sequence[Tensor]) -> list[Tensor]:
    """Find the parameters that features were computed with, by a walk through their autograd graph.

    Args:
        features: Outputs of a network, with their graph.

    Returns:
        The trainable parameters, each once, in the order in which the forward pass first used them.

    Examples:
        >>> import torch
        >>> encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> found = find_parameters([encoder(torch.randn(3, 4))])
        >>> [tuple(parameter.shape) for parameter in found]
        [(8, 4), (8,), (2, 8), (2,)]
    """
    uses: dict[int, tuple[tuple[int, int], Tensor]] = {}
    waiting = [feature.grad_fn for feature in features if feature.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        for slot, (behind, _) in enumerate(node.next_functions):
            leaf = getattr(behind, "variable", None)
            if isinstance(leaf, nn.Parameter):
                use = (node._sequence_nr(), slot), leaf
                uses[id(leaf)] = min(use, uses.get(id(leaf), use), key=itemgetter(0))
            elif behind is not None and behind not in seen:
                seen.add(behind)
                waiting.append(behind)
    return [leaf for _, leaf in sorted(uses.values(), key=itemgetter(0))]


def exclude(parameters: Sequence[Tensor], others: Iterable[Tensor]) -> list[Tensor]:
    """Return the parameters that are not among the others."""
    known = {id(tensor) for tensor in others}
    return [tensor for tensor in parameters if id(tensor) not in known]


def last_layer(parameters: Sequence[Tensor]) -> list[Tensor]:
    """Last weight matrix (or kernel) and whatever follows it: its bias, the scale and shift of a normalisation.

    Examples:
        >>> [tuple(parameter.shape) for parameter in last_layer(list(nn.Linear(4, 2).parameters()))]
        [(2, 4), (2,)]
    """
    start = len(parameters) - 1
    while start > 0 and parameters[start].ndim < 2:
        start -= 1
    return list(parameters[start:])


def voting_parameters(shared: Sequence[Tensor], voting: Voting) -> list[Tensor]:
    """Parameters whose gradients determine the weights.

    Raises:
        ValueError: The choice is unknown, empty, or not among the shared parameters.
    """
    if isinstance(voting, str):
        if voting not in ("all", "last"):
            raise ValueError(f"voting must be 'all', 'last' or parameters, got {voting!r}")
        return list(shared) if voting == "all" else last_layer(shared)
    chosen = trainable_parameters(voting)
    if not chosen or exclude(chosen, shared):
        raise ValueError("voting must name at least one shared parameter, and shared parameters only")
    return chosen


def rate_multipliers(parameters: Sequence[Tensor], metric: Metric) -> list[float]:
    """Distance that the step moves each tensor for the same gradient, relative to the tensor that moves most.

    With an optimiser these are the learning rates of its groups. Inner products weighted by them say how a loss changes
    along the step that is actually taken.

    Raises:
        ValueError: A voting parameter has no learning rate, or a rate is negative.
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
