"""From settings to the parts of a regression run: objectives, optimiser, step; the network is a classifier's."""

from __future__ import annotations

import torch

from paretoda.data.values import ValuePair
from paretoda.objectives.parts.sum_objective import merge_source_and_alignment
from paretoda.objectives.parts.table import make_objective
from paretoda.objectives.regression import VALUE_GUIDES, VALUE_LOSSES, VALUE_METHODS, VALUE_TARGET_LOSSES
from paretoda.run.build import assemble_step
from paretoda.run.settings import Settings
from paretoda.tasks.classification.build import make_classifier, make_optimiser
from paretoda.training.seeding import seed_everything
from paretoda.training.step import Step
from paretoda.types import Objective

_RATE = 0.003
"""Default learning rate: those of classification make a squared error diverge."""


def make_objectives(settings: Settings, width: int) -> dict[str, Objective]:
    """Make the source, alignment and target losses that the settings name.

    Args:
        settings: Settings of the run.
        width: Width of the features.
    """
    seed_everything(settings.seed, "objectives")
    options, shape = settings.part_options, {"features": width, "classes": 1}
    made = {
        "source": make_objective("source loss", settings.source_loss, dict(VALUE_LOSSES), shape, None),
        "alignment": make_objective("method", settings.method, VALUE_METHODS, shape, options["alignment"]),
        **{
            part: make_objective("target loss", name, VALUE_TARGET_LOSSES, shape, options[part])
            for part, name in settings.target_losses.items()
        },
    }
    objectives = {name: objective for name, objective in made.items() if objective is not None}
    return merge_source_and_alignment(objectives) if settings.joined else objectives


def build(settings: Settings, pair: ValuePair, device: torch.device) -> Step:
    """Build the step of a regression run, before training."""
    model = make_classifier(settings, pair)
    width = model.architecture.width
    objectives = make_objectives(settings, width)

    def guide() -> Objective:
        shape = {"features": width, "classes": 1}
        made = make_objective("guide", settings.guide, dict(VALUE_GUIDES), shape, settings.part_options["guide"])
        assert made is not None  # no guide in the table is None
        return made

    def optimiser() -> torch.optim.Optimizer:
        return make_optimiser(settings, model, objectives, default_lr=_RATE)

    return assemble_step(settings, model, objectives, device, make_guide=guide, make_optimiser=optimiser)
