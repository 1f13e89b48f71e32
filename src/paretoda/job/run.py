"""A finished run: its model, its history, and what can be said of it without labels."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretoda.data import open_samples
from paretoda.data.samples import Samples
from paretoda.job.directory import RunDirectory, environment
from paretoda.job.predictor import Predictor
from paretoda.job.settings import Settings
from paretoda.report.facts import RunFacts
from paretoda.report.page import run_page
from paretoda.training.files import write_json, write_text


@dataclass(frozen=True, eq=False)
class Run:
    """What `paretoda.adapt` returns.

    Args:
        settings: of the run.
        model: the chosen model, ready to predict on the target.
        source_model: the same networks for data of the source, whose features may be scaled otherwise.
        last: the model after the last step.
        history: one line a step: losses, weights, move, cosines.
        scores: of the chosen model, by label-free validators; higher is better.
        candidates: steps and scores of all candidates.
        chosen: after how many steps the chosen model was taken.
        sentences: what the user should know, in plain words: the choice, disagreement, negative transfer, data notes.
        negative_transfer: the sentence that adaptation may have made the model worse; None where nothing says so.
        directory: its files; None where nothing was written.
    """

    settings: Settings
    model: Predictor
    source_model: Predictor
    last: Predictor
    history: list[dict[str, Any]]
    scores: dict[str, float]
    candidates: list[dict[str, Any]]
    chosen: int
    sentences: tuple[str, ...]
    negative_transfer: str | None = None
    directory: Path | None = None

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.model.classes

    def predict_proba(self, inputs: Any, *, refined: bool = False) -> NDArray[np.float32]:
        """Class probabilities of target samples (a path, an array, a dataset), shape (n, K)."""
        return self.model.probabilities(open_samples(inputs, labelled=False), refined=refined)

    def predict(self, inputs: Any, *, refined: bool = False) -> list[str]:
        """Names of the most probable classes of target samples."""
        return [self.classes[index] for index in self.predict_proba(inputs, refined=refined).argmax(axis=1)]

    @property
    def moves(self) -> dict[str, int]:
        """How often each rule chose the weights."""
        return dict(Counter(str(line["move"]) for line in self.history))

    def summary(self) -> dict[str, Any]:
        """The results as plain values, for results.json and `--json`."""
        return {
            "chosen_step": self.chosen,
            "scores": self.scores,
            "candidates": self.candidates,
            "moves": self.moves,
            "sentences": list(self.sentences),
        }


def predictions_table(predictor: Predictor, samples: Samples, probabilities: NDArray[np.float32]) -> str:
    """A CSV table with one row a sample: its name, predicted class, confidence."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "prediction", "confidence"])
    best = probabilities.argmax(axis=1)
    for name, index, row in zip(samples.names(range(len(samples))), best, probabilities, strict=True):
        writer.writerow([name, predictor.classes[index], f"{row[index]:.6f}"])
    return text.getvalue()


def run_facts(run: Run, predictions: str, title: str | None = None) -> RunFacts:
    """What the page of a run shows.

    Args:
        run: a finished one.
        predictions: the table of the target's predictions, as in predictions.csv.
        title: of the page; the name of the run by default.
    """
    rows = csv.DictReader(io.StringIO(predictions))
    name = run.settings.method if run.directory is None else run.directory.resolve().name
    return RunFacts(
        title=title or f"ParetoDA run {name}",
        settings=run.settings.model_dump(),
        environment=environment(),
        history=run.history,
        candidates=run.candidates,
        chosen=run.chosen,
        scores=run.scores,
        sentences=run.sentences,
        predictions=[(row["name"], row["prediction"], float(row["confidence"])) for row in rows],
    )


def write_results(directory: RunDirectory, run: Run, target: Samples) -> None:
    """Predictions, results and page first, the model last: where it is, all is there."""
    predictions = predictions_table(run.model, target, run.model.probabilities(target))
    write_text(directory.predictions, predictions)
    write_json(directory.results, run.summary())
    write_text(directory.report, run_page(run_facts(run, predictions)))
    run.model.save(directory.model, directory.description)
    directory.drop_candidates()
