"""MetaAlign: a step on one objective must also help the other (Wei et al., 2021)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from paretoda.gradients import Report
from paretoda.models.batchnorm import frozen_statistics
from paretoda.schemes.linear import Linear
from paretoda.training.seeding import isolated_rng
from paretoda.training.step import Step
from paretoda.types import Batch


class _FunctionCall(nn.Module):
    """Runs a function; a functional call of this module chooses the parameters of the model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, run: Callable[[], Tensor]) -> Tensor:
        return run()


def call_with_parameters(model: nn.Module, parameters: Mapping[str, Tensor], run: Callable[[], Tensor]) -> Tensor:
    """Return what `run` returns while the model has these parameters instead of its own, differentiable in them.

    Args:
        model: The model that `run` uses.
        parameters: Parameters by name; others stay. BatchNorm's scales and shifts are parameters like others.
        run: Function without arguments.
    """
    given = {f"model.{name}": tensor for name, tensor in parameters.items()}
    answer: Tensor = functional_call(_FunctionCall(model), given, (run,))
    return answer


def gradient_step(
    loss: Tensor, parameters: Mapping[str, Tensor], rates: Mapping[str, float], *, second_order: bool
) -> dict[str, Tensor]:
    """The gradient step θ' = θ - rate ∇L(θ), as a function of θ.

    Args:
        loss: L, with its graph, which is kept.
        parameters: θ by name.
        rates: Learning rates by name.
        second_order: Whether ∇L counts as a function of θ as well; otherwise it is a constant, and dθ'/dθ = 1.
    """
    slopes: Sequence[Tensor | None] = torch.autograd.grad(
        loss, list(parameters.values()), retain_graph=True, create_graph=second_order, allow_unused=True
    )
    pairs = zip(parameters.items(), slopes, strict=True)
    return {name: here if slope is None else here - rates[name] * slope for (name, here), slope in pairs}


@dataclass(frozen=True)
class MetaAlign:
    """A step on the alignment must also help the classification, and vice versa: L_1(θ) + L_2(θ - a ∇L_1(θ)).

    Expanded, that is L_1 + L_2 - a <∇L_1, ∇L_2> + O(a²): it rewards gradients that agree. Further losses are added as
    they are, at θ. Discriminators learn at θ, from their own loss. The second pass over the batch has the same dropout
    and leaves BatchNorm's statistics unchanged; with a = 0 the result is the plain sum.

    Args:
        train: Objective of the inner step, L_1.
        test: Objective that is measured after it, L_2.
        rate: a in units of each parameter's learning rate; the authors' default is 1. Their script runs with 100 at
            1e-3.
        alternate: Whether the two change places at every other step.
        second_order: Whether the inner step is differentiated as well; the authors' code does not, and is a third
            cheaper.

    Raises:
        ValueError: The rate is negative, or both objectives are the same.
    """

    train: str = "alignment"
    test: str = "source"
    rate: float = 1.0
    alternate: bool = True
    second_order: bool = False
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    guided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.rate < float("inf"):
            raise ValueError(f"rate must be 0 or more, got {self.rate}")
        if self.train == self.test:
            raise ValueError(f"train and test are both {self.train!r}: metaalign needs two objectives")

    def check(self, step: Step) -> None:
        """Raise a `ValueError` unless both objectives are there."""
        for role, name in (("train", self.train), ("test", self.test)):
            if name not in step.objectives:
                raise ValueError(
                    f"metaalign pairs {self.train!r} with {self.test!r}, but the losses are "
                    f"{', '.join(step.objectives)}: name one of them with --options scheme.{role}=NAME"
                )

    def fill(self, step: Step, batch: Batch) -> Report:
        """Fill the gradients of the first loss here and of the second one step ahead."""
        count = int(self._memory.get("count", 0))
        first, second = (self.train, self.test) if not self.alternate or count % 2 == 0 else (self.test, self.train)
        with isolated_rng(step.device):  # the random state is restored, so the second pass drops the same features
            view = step.view(batch)
        parameters = {name: tensor for name, tensor in step.model.named_parameters() if tensor.requires_grad}
        moved = gradient_step(
            view.losses[first], parameters, self._rates(step, parameters), second_order=self.second_order
        )

        def ahead() -> Tensor:
            with step.autocast(), frozen_statistics(step.model):
                loss: Tensor = step.objectives[second](*step.domains(batch))
            return loss.float() if step.precision != "32" else loss

        losses = {**view.losses, second: call_with_parameters(step.model, moved, ahead)}
        report = step.weigh(replace(view, losses=losses), Linear())
        self._memory["count"] = count + 1
        return report

    def _rates(self, step: Step, parameters: Mapping[str, Tensor]) -> dict[str, float]:
        rates = {id(p): float(group["lr"]) for group in step.optimiser.param_groups for p in group["params"]}
        return {name: self.rate * rates[id(tensor)] for name, tensor in parameters.items()}

    def state_dict(self) -> dict[str, object]:
        """Return the number of steps taken, which says whose turn it is."""
        return dict(self._memory)

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Continue from the state that `state_dict` returned."""
        self._memory.clear()
        self._memory.update(state)
