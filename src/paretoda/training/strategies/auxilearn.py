"""AuxiLearn: the combination of the losses is learned by implicit differentiation (Navon et al., 2021)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from paretoda.core.adam import Adam
from paretoda.core.problem import Move, Problem, Vector, Weights
from paretoda.gradients import NonFiniteError, Report
from paretoda.gradients.hypergradient import hypergradient
from paretoda.training.step import Step
from paretoda.training.strategy import BatchView
from paretoda.types import Batch

_HIDDEN = 3
"""Units of the non-linear combination, as in the paper."""


def linear_combination(learned: Tensor, losses: Tensor) -> Tensor:
    """L_1 + Σ φ_i L_i over the others; only the proportions of weights matter for a minimum, so the first weight is 1.

    Args:
        learned: φ >= 0, shape (m - 1,).
        losses: Losses, shape (m,), the source's first.
    """
    return losses[0] + learned @ losses[1:]


def monotone_combination(learned: Tensor, losses: Tensor) -> Tensor:
    """L_1 + c · softplus(A L + b): increases with every loss, by an amount that depends on all of them.

    Args:
        learned: A (3 x m), c (3) and b (3), flat; A, c >= 0.
        losses: Losses, shape (m,), the source's first.
    """
    size = len(losses)
    inner, outer, shift = torch.split(learned, [_HIDDEN * size, _HIDDEN, _HIDDEN])
    return losses[0] + outer @ functional.softplus(inner.reshape(_HIDDEN, size) @ losses + shift)


@dataclass(frozen=True, eq=False)
class _FixedWeights:
    """A scheme with given weights."""

    weights: Vector
    guided: ClassVar[bool] = False

    def __call__(self, problem: Problem, /) -> Weights:
        return self.ahead(problem.losses)

    def ahead(self, losses: Vector, /) -> Weights:
        return Weights(self.weights / len(losses), Move.LEARNED)


@dataclass(frozen=True)
class AuxiLearn:
    """Non-negative loss weights, learned so that training on the weighted losses lowers the guide (the paper's ALID).

    The network steps on g_φ(L); at every `interval`-th step φ descends along the guide's hyper-gradient, with Adam.

    Args:
        combination: "linear", a weight for each loss besides the source's 1; "monotone", a small network that increases
            with every loss, plus the source's.
        interval: Steps of the network between two steps of φ.
        rate: Learning rate of φ.
        terms: Terms of the Neumann series after its first; with 0, H⁻¹ is taken as η.
        neumann_rate: η; None means the network's largest learning rate.

    Raises:
        ValueError: A value is out of its range.
    """

    combination: Literal["linear", "monotone"] = "linear"
    interval: int = 5
    rate: float = 0.025
    terms: int = 3
    neumann_rate: float | None = None
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    guided: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.combination not in ("linear", "monotone"):
            raise ValueError(f"combination must be 'linear' or 'monotone', got {self.combination!r}")
        if self.interval < 1 or self.terms < 0:
            raise ValueError(f"interval must be at least 1 and terms at least 0, got {self.interval} and {self.terms}")
        for name, value in (("rate", self.rate), ("neumann_rate", self.neumann_rate or 0.0)):
            if not 0 <= value < np.inf:
                raise ValueError(f"{name} must be 0 or more, got {value}")

    @property
    def refreshes(self) -> bool:
        """Whether φ learns at the next step: only then is the guide read.

        It does not at the first step, which is far from any minimum.
        """
        count = int(self._memory.get("count", 0))
        return count > 0 and count % self.interval == 0

    def check(self, step: Step) -> None:
        """Raise a `ValueError` unless there are losses to weigh and the head follows the same weights."""
        if len(step.objectives) < 2:
            raise ValueError("auxilearn weighs losses beside the source's: choose a method or a target loss as well")
        if step.head_losses is not None:
            raise ValueError("auxilearn learns the weights of all losses for the head too: leave out --head-losses")

    def fill(self, step: Step, batch: Batch) -> Report:
        """Let φ learn where it is due, then fill the gradient of g_φ(L)."""
        view = step.view(batch)
        if view.guide is not None:
            self._learn(step, view)
        values = torch.stack([loss.detach().double().cpu() for loss in view.losses.values()]).requires_grad_()
        combined = self._combine(torch.tensor(self._state(len(values)).values, dtype=torch.float64), values)
        weights = torch.autograd.grad(combined, values)[0].numpy()
        report = step.weigh(view, _FixedWeights(weights))
        self._memory["count"] = int(self._memory.get("count", 0)) + 1
        return report if view.guide is None else replace(report, guide_loss=float(view.guide.detach()))

    def _learn(self, step: Step, view: BatchView) -> None:
        losses = torch.stack(list(view.losses.values()))
        state = self._state(len(losses))
        learned = torch.tensor(state.values, dtype=losses.dtype, device=losses.device, requires_grad=True)
        parameters = [parameter for parameter in step.model.parameters() if parameter.requires_grad]
        eta = self.neumann_rate
        eta = max(float(group["lr"]) for group in step.optimiser.param_groups) if eta is None else eta
        assert view.guide is not None
        slope = hypergradient(
            self._combine(learned, losses), view.guide, parameters, learned, rate=eta, terms=self.terms
        )
        if not bool(slope.isfinite().all()):
            raise NonFiniteError(
                "the hyper-gradient of auxilearn is not finite; no gradient was written. "
                "Lower --options scheme.neumann_rate=X, or do without second derivatives: scheme.terms=0"
            )
        state = state.step(slope.double().cpu().numpy(), self.rate)
        free = _HIDDEN if self.combination == "monotone" else 0  # the shifts b, which come last
        bounded = len(state.values) - free
        values = [max(value, 0.0) if place < bounded else value for place, value in enumerate(state.values)]
        self._memory["learned"] = replace(state, values=values)

    def _combine(self, learned: Tensor, losses: Tensor) -> Tensor:
        return (linear_combination if self.combination == "linear" else monotone_combination)(learned, losses)

    def _state(self, size: int) -> Adam:
        """Return φ and its moments.

        It starts near the plain sum; in the small network the source counts once more.
        """
        if "learned" in self._memory:
            state: Adam = self._memory["learned"]
            return state
        if self.combination == "linear":
            return Adam.start(1.0, size - 1)
        inner = np.random.default_rng(0).uniform(0.5, 1.5, _HIDDEN * size)
        values = [*inner.tolist(), *[2.0 / _HIDDEN] * _HIDDEN, *[0.0] * _HIDDEN]
        return replace(Adam.start(0.0, len(values)), values=values)

    def state_dict(self) -> dict[str, object]:
        """Return φ with its moments, and the number of steps taken."""
        learned = {"learned": asdict(self._memory["learned"])} if "learned" in self._memory else {}
        return {**self._memory, **learned}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Continue from the state that `state_dict` returned."""
        self._memory.clear()
        self._memory.update(state)
        if "learned" in state:
            self._memory["learned"] = Adam(**cast("dict[str, Any]", state["learned"]))
