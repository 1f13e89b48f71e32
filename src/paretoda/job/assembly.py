"""The step of a run from its parts, as the settings say; the same for every task."""

from __future__ import annotations

import torch

from paretoda.core.problem import Scheme
from paretoda.domains import Model, Objective
from paretoda.job.memory import prepare
from paretoda.job.settings import Settings
from paretoda.training.step import Step
from paretoda.training.strategy import Strategy


def assembled(
    settings: Settings,
    model: Model,
    objectives: dict[str, Objective],
    scheme: Scheme | Strategy,
    guide: Objective | None,
    optimiser: torch.optim.Optimizer,
) -> Step:
    """The step with these parts, already where they are to be trained."""
    prepare(settings, model)
    return Step(
        model=model,
        objectives=objectives,
        scheme=scheme,
        optimiser=optimiser,
        guide=guide,
        bn=settings.bn,
        head_losses=settings.head_losses,
        voting=settings.voting,
        precision=settings.precision,
        schedule=settings.schedule,
        decay=settings.decay,
        clip=settings.clip,
        accumulate=settings.accumulate,
    )
