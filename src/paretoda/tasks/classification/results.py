"""What a classification run leaves behind: the table of predictions and the pictures of its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from paretoda.data.open.samples import open_samples
from paretoda.data.samples import Samples
from paretoda.report.facts import NO_PICTURES, Pictures, RunFacts
from paretoda.report.pictures import take_oracle_pictures, take_pictures
from paretoda.run.callbacks import Callbacks
from paretoda.run.directory.tables import Predicted
from paretoda.tasks.classification.inputs import ClassificationInputs
from paretoda.tasks.classification.predictor import ClassificationPredictor


def prediction_rows(classes: Sequence[str], samples: Samples, probabilities: NDArray[np.float32]) -> list[Predicted]:
    """Return one row for each sample: its name, predicted class and confidence."""
    best = probabilities.argmax(axis=1)
    found = zip(samples.names(range(len(samples))), best, probabilities, strict=True)
    return [(name, classes[index], round(float(row[index]), 6)) for name, index, row in found]


def make_pictures(model: ClassificationPredictor, inputs: ClassificationInputs | None, facts: RunFacts) -> Pictures:
    """Return what the model makes of the data; no pictures where the data are no longer those of the run."""
    if inputs is None or not inputs.has_target or inputs.raw.classes != model.classes:
        return NO_PICTURES
    target, device = inputs.raw.target.samples, next(model.model.parameters()).device
    if target.names(range(len(target))) != [name for name, _, _ in facts.predictions]:
        return NO_PICTURES
    return take_pictures(model.model, inputs.pair, target, facts.predictions, device)


def add_oracle_pictures(
    pictures: Pictures, model: ClassificationPredictor, labelled: str, callbacks: Callbacks
) -> Pictures:
    """Put the labelled samples beside the held-out source, and their images in the place of unlabelled ones."""
    samples = open_samples(labelled, labelled=True, classes=model.classes)
    for note in samples.notes:
        callbacks.notify(note)
    with torch.no_grad():
        oracle = take_oracle_pictures(model.classes, samples, model.probabilities(samples))
    return replace(pictures, cards=oracle.cards, confusions=[*oracle.confusions, *pictures.confusions])
