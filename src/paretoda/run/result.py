"""A finished run: its models, its history, and what is known of it without labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paretoda.report.facts import RunFacts
from paretoda.report.notebook import CellFacts, render_run_cell
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.settings import Settings

_UNFINISHED = "This run has not finished: there are no predictions and no scores yet."


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Run:
    """What `paretoda.adapt` returns.

    Args:
        settings: Settings of the run.
        classes: Names of the classes.
        model: The chosen model, ready to predict on the target.
        source_models: The same networks for data of each source, whose inputs may be scaled differently.
        last: The model after the last step.
        history: One entry for each step: losses, weights, move, cosines.
        scores: Scores of the chosen model by label-free validators; higher is better.
        candidates: Steps and scores of all candidates.
        chosen: Number of steps after which the chosen model was taken.
        sentences: What the user should know, in plain words: the choice, disagreement of validators, negative
            transfer, notes on the data.
        negative_transfer: The sentence that adaptation may have made the model worse; None where nothing says so.
        directory: Directory of its files; None where nothing was written.
        label_sets: What is known of the target's classes where the label sets differ: weights of the classes, or the
            threshold of the novelty and the share of unknown samples.
    """

    settings: Settings
    classes: tuple[str, ...]
    model: Any
    source_models: tuple[Any, ...]
    last: Any
    history: list[dict[str, Any]]
    scores: dict[str, float]
    candidates: list[dict[str, Any]]
    chosen: int
    sentences: tuple[str, ...]
    negative_transfer: str | None = None
    directory: Path | None = None
    label_sets: Mapping[str, Any] = field(default_factory=dict)

    @property
    def source_model(self) -> Any:
        """The networks for data of the source, of several the first."""
        return self.source_models[0]

    def predict(self, inputs: Any, *, refined: bool = False) -> list[Any]:
        """Predict samples of the target with the chosen model.

        Args:
            inputs: Samples of the target: a path, an array, a dataset.
            refined: Use the refined predictions of a run with the target loss "tcm".

        Returns:
            The name of the most probable class of each sample; for segmentation, the label map of each image; for
            regression, the value of each sample.
        """
        return list(self.model.predict(inputs, refined=refined))

    def predict_proba(self, inputs: Any, *, refined: bool = False) -> Any:
        """Return class probabilities of target samples, shape (n, K); for segmentation, a list of maps (K, h, w).

        Args:
            inputs: Samples of the target: a path, an array, a dataset.
            refined: Use the refined predictions of a run with the target loss "tcm".
        """
        return self.model.predict_proba(inputs, refined=refined)

    @property
    def moves(self) -> dict[str, int]:
        """How often each rule chose the weights."""
        return dict(Counter(str(line["move"]) for line in self.history))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._trained}; {self._kept}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: losses, scores with their warning, and the sentences."""
        return render_run_cell(
            CellFacts(
                heading=self._trained,
                kept=f"{self._kept}; {_describe_classes(self.classes)}",
                history=self.history,
                scores=self.scores,
                sentences=self.sentences,
                alarm=self.negative_transfer,
            )
        )

    @property
    def _trained(self) -> str:
        losses = "" if self.settings.target_loss == "none" else f"+{self.settings.target_loss}"
        return f"{self.settings.method}{losses}, scheme {self.settings.scheme}"

    @property
    def _kept(self) -> str:
        return f"the model after step {self.chosen} of {self.settings.steps} was kept"

    def summary(self) -> dict[str, Any]:
        """Return the results as plain values, for results.json and `--json`."""
        return {
            "chosen_step": self.chosen,
            "scores": self.scores,
            "candidates": self.candidates,
            "moves": self.moves,
            "sentences": list(self.sentences),
            **self.label_sets,
        }


def _describe_classes(names: tuple[str, ...]) -> str:
    """Return the number and the names of the classes, or what a task without classes predicts."""
    return f"{len(names)} classes: {_shorten(names)}" if len(names) > 1 else f"it predicts: {_shorten(names)}"


def _shorten(names: tuple[str, ...], most: int = 12) -> str:
    """Join the first names and say whether there are more."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def _describe_inputs(given: Mapping[str, str | list[str]]) -> dict[str, str]:
    """Return domain -> location of its data; several sources have numbers."""
    places = {
        domain if isinstance(place, str) else f"{domain} {number}": one
        for domain, place in given.items()
        for number, one in enumerate([place] if isinstance(place, str) else place, start=1)
    }
    return {domain: path if Path(path).is_absolute() else "in memory" for domain, path in places.items()}


def read_facts(directory: RunDirectory, title: str | None = None) -> RunFacts:
    """Read what the page of a run shows from its files, without pictures; the run may still be going on."""
    settings, given = directory.read_config()
    results = directory.read_results()
    return RunFacts(
        title=title or f"ParetoDA run {directory.path.resolve().name}",
        settings=settings.model_dump(),
        environment=directory.read_environment(),
        history=directory.read_metrics() if directory.metrics.exists() else [],
        candidates=results.get("candidates", []),
        chosen=results.get("chosen_step"),
        scores=results.get("scores", {}),
        sentences=results.get("sentences", [_UNFINISHED]),
        predictions=directory.read_predictions() if results else [],
        class_weights=results.get("class_weights", {}),
        novelty=_read_novelty(results),
        inputs=_describe_inputs(given),
    )


def _read_novelty(results: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the threshold of the novelty and the share of unknown samples; None where there is no threshold."""
    threshold, share = results.get("novelty_threshold"), results.get("unknown_share")
    return None if threshold is None or share is None else (threshold, share)
