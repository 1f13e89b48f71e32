"""A finished run: its model, its history, and what can be said of it without labels."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from paretoda.data import open_samples
from paretoda.data.errors import DataError
from paretoda.data.samples import Samples
from paretoda.job.directory import RunDirectory
from paretoda.job.inputs import Inputs, open_inputs
from paretoda.job.predictor import Predictor
from paretoda.job.settings import Settings
from paretoda.report.facts import NO_PICTURES, Pictures, RunFacts
from paretoda.report.page import run_page
from paretoda.report.pictures import take_pictures
from paretoda.training.files import write_json, write_text

_UNFINISHED = "This run has not finished: there are no predictions and no scores yet."


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


def read_facts(directory: RunDirectory, title: str | None = None) -> RunFacts:
    """What the page of a run shows, from its files; it may still be under way. Without pictures."""
    settings, given = directory.read_config()
    results = directory.read_results()
    return RunFacts(
        title=title or f"ParetoDA run {directory.path.resolve().name}",
        settings=settings.model_dump(),
        environment=directory.read_environment(),
        history=directory.read_metrics() if directory.metrics.exists() else [],
        candidates=results.get("candidates", []),
        chosen=results.get("chosen_step", 0),
        scores=results.get("scores", {}),
        sentences=results.get("sentences", [_UNFINISHED]),
        predictions=read_predictions(directory.predictions.read_text(encoding="utf-8")) if results else [],
        inputs={domain: path if Path(path).is_absolute() else "in memory" for domain, path in given.items()},
    )


def read_predictions(table: str) -> list[tuple[str, str, float]]:
    """(name, class, confidence) of every row of a predictions.csv."""
    rows = csv.DictReader(io.StringIO(table))
    return [(row["name"], row["prediction"], float(row["confidence"])) for row in rows]


def reachable_inputs(directory: RunDirectory, device: torch.device) -> Inputs | None:
    """The data of the run, opened again; None where they were in memory, or are not what and where they were."""
    settings, given = directory.read_config()
    if "source" not in given or not all(Path(path).is_absolute() for path in given.values()):
        return None
    try:
        return open_inputs(settings, given["source"], given.get("target"), device, lambda _: None)
    except (DataError, OSError):
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
    """Predictions, results and page first, the model last: where it is, all is there.

    Args:
        directory: of the run.
        run: a finished one.
        inputs: the data of the run.
    """
    target = inputs.raw.target.samples
    write_text(directory.predictions, predictions_table(run.model, target, run.model.probabilities(target)))
    write_json(directory.results, run.summary())
    facts = read_facts(directory)  # from the files, so that `paretoda report` makes the same page of them
    write_text(directory.report, run_page(replace(facts, pictures=pictures_of(run.model, inputs, facts))))
    run.model.save(directory.model, directory.description)
    directory.drop_candidates()
