"""Pareto hypernetwork: one network for the whole front, trained on random preferences (Navon et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch.distributions import Dirichlet

from paretoda.gradients import Report
from paretoda.models.classifier import Classifier
from paretoda.schemes.linear import Linear
from paretoda.training.step import Step
from paretoda.types import Batch


@dataclass(frozen=True)
class Hypernetwork:
    """One network for the whole front (the paper's HPF): its last layers follow a preference, `predict --preference`.

    Every step draws a preference r from a Dirichlet distribution and lowers m Σ r_i L_i(θ, h(r)), on average over r the
    plain sum. Between steps, and so for candidates, scores and the run's own predictions, all losses count equally. The
    draw comes from torch's generator, which a run seeds by the number of the step, so there is no state to save.

    Args:
        concentration: Concentration of the Dirichlet distribution; below 1 most preferences are near a corner, where
            one loss dominates.

    Raises:
        ValueError: The concentration is not positive.
    """

    concentration: float = 0.2
    guided: ClassVar[bool] = False
    spreads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.concentration < float("inf"):
            raise ValueError(f"concentration must be positive, got {self.concentration}")

    def check(self, step: Step) -> None:
        """Raise unless the network follows a preference over these losses and no loss is lowered outside of it."""
        model = step.model
        if not isinstance(model, Classifier) or model.architecture.losses != tuple(step.objectives):
            raise ValueError(
                f"the scheme 'hypernetwork' trains a network that follows a preference: make it with "
                f"make_model(..., losses={tuple(step.objectives)})"
            )
        if len(step.objectives) < 2:
            raise ValueError("hypernetwork prefers one loss to another: choose a method or a target loss as well")
        for name, objective in step.objectives.items():
            if objective.encoder_updates > 1:
                raise ValueError(
                    f"hypernetwork: the {name!r} loss is lowered {objective.encoder_updates} times alone, which no "
                    "preference weighs: leave out encoder_updates"
                )

    def fill(self, step: Step, batch: Batch) -> Report:
        """Fill the gradients of the losses weighted by a random preference, which the network is given."""
        assert isinstance(step.model, Classifier)  # `check` ensures it
        size = len(step.objectives)
        ray = Dirichlet(torch.full((size,), self.concentration, dtype=torch.float64)).sample()
        step.model.prefer(ray.tolist())
        try:
            return step.weigh(step.view(batch), Linear(tuple((size * ray).tolist())))
        finally:
            step.model.prefer([1.0] * size)
