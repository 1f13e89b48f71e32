"""PGA: every loss is lowered where the gradients agree more and are shorter (Phan et al., 2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor

from paretoda.gradients import Report
from paretoda.models.batchnorm import frozen_statistics
from paretoda.schemes.linear import Linear
from paretoda.training.seeding import isolated_rng
from paretoda.training.step import Step
from paretoda.training.strategies.metaalign import call_with_parameters
from paretoda.types import Batch

Gradient: TypeAlias = dict[str, Tensor]
"""Parameter -> gradient of one loss in it."""
_SHORTEST = 1e-12


def find_gradient(loss: Tensor, parameters: Mapping[str, Tensor]) -> Gradient:
    """Return the gradient of a loss, whose graph is kept; 0 for parameters that it does not depend on."""
    slopes: Sequence[Tensor | None] = torch.autograd.grad(
        loss, list(parameters.values()), retain_graph=True, allow_unused=True
    )
    pairs = zip(parameters.items(), slopes, strict=True)
    return {name: torch.zeros_like(here) if slope is None else slope for (name, here), slope in pairs}


def find_shift(own: Gradient, others: Sequence[Gradient], flatness: float, agreement: float) -> Gradient:
    """Return ρ g_i / |g_i| - γ Σ_j g_j / (|g_i| |g_j|), the place where a loss is differentiated.

    Args:
        own: g_i.
        others: The gradients g_j of all other losses.
        flatness: ρ.
        agreement: γ.

    Examples:
        >>> own, other = {"weight": torch.tensor([2.0, 0.0])}, {"weight": torch.tensor([0.0, 4.0])}
        >>> find_shift(own, [other], flatness=1.0, agreement=1.0)["weight"]
        tensor([ 1.0000, -0.5000])
    """
    length = _length(own)
    shift = {name: flatness / length * slope for name, slope in own.items()}
    for other in others:
        factor = agreement / (length * _length(other))
        shift = {name: moved - factor * other[name] for name, moved in shift.items()}
    return shift


def _length(gradient: Gradient) -> Tensor:
    squares = torch.stack([slope.square().sum() for slope in gradient.values()])
    return squares.sum().sqrt().clamp(min=_SHORTEST)


@dataclass(frozen=True)
class Pga:
    """The sum of all losses, each differentiated at θ + ρ g_i / |g_i| - γ Σ_j g_j / (|g_i| |g_j|).

    To first order, that adds ρ |g_i| to every loss, so that minima are flat, and subtracts γ times the cosine of every
    pair of gradients, so that they agree. The method is made for several sources, whose losses conflict. Networks of
    the objectives learn at θ, from their own losses. All passes over a batch have the same dropout and leave
    BatchNorm's statistics as the first one does; with ρ = γ = 0 the step is that of the plain sum.

    Args:
        flatness: ρ.
        agreement: γ, the authors' 0.005.

    Raises:
        ValueError: ρ or γ is negative.
    """

    flatness: float = 0.05
    agreement: float = 0.005
    guided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, value in (("flatness", self.flatness), ("agreement", self.agreement)):
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name} must be 0 or more, got {value}")

    def check(self, step: Step) -> None:
        """Raise a `ValueError` unless there are gradients that can agree."""
        if len(step.objectives) < 2:
            raise ValueError("pga makes gradients agree: choose a method or a target loss as well")

    def fill(self, step: Step, batch: Batch) -> Report:
        """Fill the gradient of the sum of the losses, each at a place of its own."""
        with isolated_rng(step.device):  # the random state is restored, so all passes drop the same features
            view = step.view(batch)
        parameters = {name: tensor for name, tensor in step.model.named_parameters() if tensor.requires_grad}
        slopes = {name: find_gradient(loss, parameters) for name, loss in view.losses.items()}

        def measure(name: str) -> Tensor:
            with step.autocast(), frozen_statistics(step.model):
                loss = step.loss(name, batch)
            return loss.float() if step.precision != "32" else loss

        losses, last = {}, list(slopes)[-1]
        for name, own in slopes.items():
            others = [slope for other, slope in slopes.items() if other != name]
            shift = find_shift(own, others, self.flatness, self.agreement)
            moved = {key: here + shift[key] for key, here in parameters.items()}
            with nullcontext() if name == last else isolated_rng(step.device):
                losses[name] = call_with_parameters(step.model, moved, partial(measure, name))
        return step.weigh(replace(view, losses=losses, features=[]), Linear())
