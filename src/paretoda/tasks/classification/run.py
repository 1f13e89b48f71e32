"""A finished run: its model, its history, and what can be said of it without labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from paretoda.data import open_samples
from paretoda.data.samples import Samples
from paretoda.errors import DataError, SettingsError, WeightsError
from paretoda.io.files import write_json, write_text
from paretoda.report.facts import NO_PICTURES, Pictures, RunFacts
from paretoda.report.page import render_run_page
from paretoda.report.pictures import take_pictures
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.model_card import write_card
from paretoda.run.directory.tables import Predicted, metrics_table, predictions_table
from paretoda.run.result import RunResult, read_facts
from paretoda.tasks.classification.inputs import Inputs, open_inputs
from paretoda.tasks.classification.predictor import Predictor


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Run(RunResult):
    """What `paretoda.adapt` returns; its arguments are those of `RunResult` and three predictors.

    Args:
        model: the chosen model, ready to predict on the target.
        source_model: the same networks for data of the source, whose features may be scaled otherwise.
        last: the model after the last step.
    """

    model: Predictor
    source_model: Predictor
    last: Predictor

    def predict_proba(self, inputs: Any, *, refined: bool = False) -> NDArray[np.float32]:
        """Class probabilities of target samples (a path, an array, a dataset), shape (n, K)."""
        return self.model.probabilities(open_samples(inputs, labelled=False), refined=refined)

    def predict(self, inputs: Any, *, refined: bool = False) -> list[str]:
        """Names of the most probable classes of target samples."""
        return [self.classes[index] for index in self.predict_proba(inputs, refined=refined).argmax(axis=1)]


def prediction_rows(predictor: Predictor, samples: Samples, probabilities: NDArray[np.float32]) -> list[Predicted]:
    """One row a sample: its name, predicted class, confidence."""
    best = probabilities.argmax(axis=1)
    found = zip(samples.names(range(len(samples))), best, probabilities, strict=True)
    return [(name, predictor.classes[index], round(float(row[index]), 6)) for name, index, row in found]


def reopen_inputs(directory: RunDirectory, device: torch.device) -> Inputs | None:
    """The data of the run, opened again; None where they were in memory, or are not what and where they were."""
    settings, given = directory.read_config()
    if "source" not in given or not all(Path(path).is_absolute() for path in given.values()):
        return None
    try:
        return open_inputs(settings, given["source"], given.get("target"), device, lambda _: None)
    except (DataError, SettingsError, WeightsError, OSError):
        return None


def pictures_of(model: Predictor, inputs: Inputs | None, facts: RunFacts) -> Pictures:
    """What the model makes of the data; nothing where the data are no longer those of the run."""
    if inputs is None or inputs.alone or inputs.raw.classes != model.classes:
        return NO_PICTURES
    target, device = inputs.raw.target.samples, next(model.model.parameters()).device
    if target.names(range(len(target))) != [name for name, _, _ in facts.predictions]:
        return NO_PICTURES
    return take_pictures(model.model, inputs.pair, target, facts.predictions, device)


def write_results(directory: RunDirectory, run: Run, inputs: Inputs) -> None:
    """Predictions, results, page and card first, the model last: where it is, all is there.

    Args:
        directory: of the run.
        run: a finished one.
        inputs: the data of the run.
    """
    target = inputs.raw.target.samples
    found = run.model.probabilities(target, workers=run.settings.workers)
    write_text(directory.predictions, predictions_table(prediction_rows(run.model, target, found)))
    write_text(directory.table, metrics_table(run.history))
    write_json(directory.results, run.summary())
    facts = read_facts(directory)  # from the files, so that `paretoda report` makes the same page of them
    write_text(directory.report, render_run_page(replace(facts, pictures=pictures_of(run.model, inputs, facts))))
    write_card(directory, facts, run.model)
    run.model.save(directory.model, directory.description)
    directory.tidy()
