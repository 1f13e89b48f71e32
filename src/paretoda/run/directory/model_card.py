"""The model card of a run, from its files and its predictor."""

from __future__ import annotations

from dataclasses import replace

from paretoda.data.scaling import FeatureTransform
from paretoda.io.files import write_text
from paretoda.report.card import CardFacts, render_model_card
from paretoda.report.facts import RunFacts
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.names import ALONE
from paretoda.tasks.classification.predictor import Predictor
from paretoda.tasks.segmentation.predictor import ScenePredictor


def write_card(directory: RunDirectory, facts: RunFacts, model: Predictor | ScenePredictor) -> None:
    """Write README.md.

    Args:
        directory: of the run.
        facts: from its files, so that the card is the same after every resume.
        model: the chosen one.
    """
    other = next(task for task in ALONE if task != facts.settings["task"])
    heard = {name: value for name, value in facts.settings.items() if name not in ALONE[other]}
    write_text(directory.card, render_model_card(replace(facts, settings=heard), _of(model)))


def _of(model: Predictor | ScenePredictor) -> CardFacts:
    if isinstance(model, ScenePredictor):
        return CardFacts(model.classes, "image-segmentation", output="FOLDER")
    task = "tabular-classification" if isinstance(model.transform, FeatureTransform) else "image-classification"
    return CardFacts(model.classes, task, model.temperature)
