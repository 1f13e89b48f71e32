"""The tensors of a backward pass: which parameters take part, checks and names, and an all-or-nothing write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from paretoda.core.problem import Move, Vector, Weights, check_offsets, reads_values
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.gradients.fsdp import is_sharded, local_part
from paretoda.gradients.gram import Row
from paretoda.gradients.report import NonFiniteError
from paretoda.gradients.vjp import FeaturePasses, vjp

Parameters: TypeAlias = nn.Module | Iterable[Tensor]
Metric: TypeAlias = Optimizer | Mapping[Tensor, float] | None
Voting: TypeAlias = Literal["all", "last"] | Parameters
Losses: TypeAlias = Mapping[str, Tensor] | Sequence[Tensor]
Private: TypeAlias = Sequence[tuple[Tensor, Parameters]]
Gradients: TypeAlias = list[tuple[Tensor, Tensor | None]]

_ROUNDING = 1e-6
"""How far below 0 rounding may bring a loss that is never negative."""


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


@dataclass(frozen=True, eq=False)
class Tensors:
    """Tensors that are differentiated, and the parameters that receive gradients.

    Args:
        names: Names of the objectives.
        losses: m scalars.
        guide: Loss of the guide, if the scheme reads one.
        shared: Parameters that the scheme steers.
        heads: Parameters behind them that follow `head_losses`.
        head_losses: Positions of the losses that reach the heads; None: see `head_weights`.
        voting: Shared parameters whose inner products are taken.
        passes: Features, if they were given.
        scale: Factor of every loss before it is differentiated (that of a GradScaler).
        processes: Processes whose samples the features are of; each has the graph of its own samples.
        offsets: Offset of each loss where logarithms or ratios of values are taken.
    """

    names: tuple[str, ...]
    losses: list[Tensor]
    guide: Tensor | None
    shared: list[Tensor]
    heads: list[Tensor]
    head_losses: list[int] | None
    voting: list[Tensor]
    passes: FeaturePasses | None
    scale: float
    offsets: tuple[float, ...]
    processes: Processes = SINGLE_PROCESS

    @property
    def exact(self) -> bool:
        """Whether all shared parameters vote, so that their gradient is a combination of existing rows."""
        return len(self.voting) == len(self.shared)

    def measured(self) -> list[Tensor]:
        """Losses and, last, the loss of the guide, if there is one."""
        return [*self.losses, *([] if self.guide is None else [self.guide])]

    def values(self) -> Tensor:
        """Values of `measured`, shape (m,) or (m + 1,), float64; the same in all processes."""
        return self.processes.mean(torch.stack([loss.detach().double() for loss in self.measured()]))

    def check_losses(self, values: Vector) -> None:
        """Raise NonFiniteError if a loss is not finite."""
        for name, value in zip([*self.names, "the guide"], values, strict=False):
            if not np.isfinite(value):
                raise NonFiniteError(f"the loss of {name!r} is {value}; no gradient was written")

    def check_signs(self, values: Vector, scheme: object) -> None:
        """Raise if the scheme reads loss values, and a loss without an offset is negative.

        Raises:
            ValueError: There is such a loss.
        """
        if not reads_values(scheme):
            return
        for name, value, offset in zip(self.names, values, self.offsets, strict=False):
            if value < -_ROUNDING and not offset:
                raise ValueError(
                    f"the loss of {name!r} is {value:.3g}, and this scheme reads loss values: give it an offset (the "
                    "argument offsets, the property offset of an Objective), or choose a scheme that reads gradients"
                )

    def weighted_sum(self, weights: Sequence[float]) -> Tensor:
        """Scale times Σ w_i L_i over the losses with w_i != 0."""
        terms = [weight * self.scale * loss for weight, loss in zip(weights, self.losses, strict=True) if weight]
        total = terms[0] if terms else 0.0 * self.losses[0]
        for term in terms[1:]:
            total = total + term
        return total

    def head_weights(self, weights: Weights) -> list[float]:
        """Weights of the losses for the heads.

        Where the weights do not come from gradients, baselines train their heads on the same weighted sum; otherwise
        all losses count 1 in their units, so that a weight of 0 in the body does not stop the classifier from learning.
        """
        size = len(self.names)
        units = [1.0] * size if weights.units is None else weights.units.tolist()
        if self.head_losses is not None:
            return [unit * (index in self.head_losses) for index, unit in enumerate(units)]
        if weights.move in (Move.FIXED, Move.LEARNED):
            return [float(size * alpha) for alpha in weights.alpha]
        return units


def check_sharded(tensors: Tensors) -> None:
    """Raise if FSDP's parameters are used in an unsupported way: several backward passes through one forward pass.

    Raises:
        ValueError: They are; the message says what to pass instead.
    """
    if not is_sharded(tensors.shared):
        return
    if tensors.exact or is_sharded(tensors.voting):
        raise ValueError(
            "a sharded encoder (FSDP) has one backward pass: take voting='last', and leave the last layer out of "
            "fully_shard, so that every process has all of it"
        )
    if tensors.passes is None:
        raise ValueError("a sharded encoder (FSDP) is differentiated from its features: give features")


def name_losses(losses: Losses) -> tuple[tuple[str, ...], list[Tensor]]:
    """Return names and scalars of the objectives; those of a list are called "loss 0", "loss 1", ...

    Raises:
        ValueError: There is no loss, or one is not a scalar.
    """
    pairs = losses.items() if isinstance(losses, Mapping) else ((f"loss {i}", loss) for i, loss in enumerate(losses))
    found = list(pairs)
    if not found:
        raise ValueError("losses is empty: give at least one")
    for name, loss in found:
        if loss.numel() != 1:
            raise ValueError(f"the loss of {name!r} has shape {tuple(loss.shape)}: take its mean or sum")
    return tuple(name for name, _ in found), [loss.reshape(()) for _, loss in found]


def find_positions(names: Sequence[str], wanted: Sequence[str | int] | None) -> list[int] | None:
    """Return the positions of losses given by name or position.

    Raises:
        ValueError: A name or position does not exist.
    """
    if wanted is None:
        return None
    for item in wanted:
        if item not in names and not (isinstance(item, int) and 0 <= item < len(names)):
            raise ValueError(f"head_losses names {item!r}, but the losses are {', '.join(names)}")
    return [item if isinstance(item, int) else names.index(item) for item in wanted]


def find_offsets(names: Sequence[str], offsets: Mapping[str, float]) -> tuple[float, ...]:
    """Return the offset of every loss, 0 where none is given.

    Raises:
        ValueError: A name does not exist, or an offset is negative or not finite.
    """
    for name in offsets:
        if name not in names:
            raise ValueError(f"offsets names {name!r}, but the losses are {', '.join(names)}")
    if offsets:
        check_offsets(tuple(offsets.values()), len(offsets))
    return tuple(float(offsets.get(name, 0.0)) for name in names)


def private_gradients(private: Private, scale: float) -> Gradients:
    """Return the gradient of each private loss for its own network.

    Raises:
        NonFiniteError: A private loss or its gradient is not finite.
    """
    found: Gradients = []
    for index, (loss, parameters) in enumerate(private):
        own = trainable_parameters(parameters)
        gradients = vjp([scale * loss], own, None, keep=True)
        if not np.isfinite(float(loss.detach())) or not all_finite(gradients):
            raise NonFiniteError(f"private loss {index} or its gradient is not finite; no gradient was written")
        found.extend(zip(own, gradients, strict=True))
    return found


def all_finite(gradients: Row) -> bool:
    """Whether no entry is NaN or infinite; needs one small copy to the host.

    A sum that is finite has finite terms. Finite terms may have an infinite sum, so that only then all are inspected.
    """
    present = [local_part(gradient) for gradient in gradients if gradient is not None]
    if not present or bool(torch.stack([gradient.sum().double() for gradient in present]).isfinite().all()):
        return True
    return all(bool(gradient.isfinite().all()) for gradient in present)


@torch.no_grad()
def write_gradients(gradients: Gradients) -> None:
    """Add each gradient to its parameter's `.grad`."""
    taken: set[int] = set()
    for parameter, gradient in gradients:
        if gradient is None:
            continue
        if parameter.grad is None:
            parameter.grad = _match_layout(_unshare(gradient.detach(), taken).to(parameter.dtype), parameter)
        else:
            parameter.grad.add_(gradient)


def _unshare(gradient: Tensor, taken: set[int]) -> Tensor:
    """Return the gradient in memory of its own: autograd may return one tensor twice, or an expanded scalar."""
    if is_sharded([gradient]):
        return gradient
    storage = gradient.untyped_storage()
    shared = storage.data_ptr() in taken or storage.nbytes() != gradient.nbytes
    taken.add(storage.data_ptr())
    return gradient.clone() if shared else gradient


def _match_layout(gradient: Tensor, parameter: Tensor) -> Tensor:
    """Return the gradient in the parameter's memory layout, because fused optimisers read both with one stride."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


@torch.no_grad()
def poison_gradients(parameters: Iterable[Tensor]) -> None:
    """Make every gradient infinite, so that a GradScaler skips the step of every optimiser and backs off."""
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, float("inf"))
