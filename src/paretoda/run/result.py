"""What every finished run has, whatever its task, and what its files say of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paretoda.report.facts import RunFacts
from paretoda.report.notebook import CellFacts, render_run_cell
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.settings import Settings

_UNFINISHED = "This run has not finished: there are no predictions and no scores yet."


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RunResult:
    """A finished run without its networks.

    Args:
        settings: of the run.
        classes: names of the classes.
        history: one line a step: losses, weights, move, cosines.
        scores: of the chosen model, by label-free validators; higher is better.
        candidates: steps and scores of all candidates.
        chosen: after how many steps the chosen model was taken.
        sentences: what the user should know, in plain words: the choice, disagreement, negative transfer, data notes.
        negative_transfer: the sentence that adaptation may have made the model worse; None where nothing says so.
        directory: its files; None where nothing was written.
    """

    settings: Settings
    classes: tuple[str, ...]
    history: list[dict[str, Any]]
    scores: dict[str, float]
    candidates: list[dict[str, Any]]
    chosen: int
    sentences: tuple[str, ...]
    negative_transfer: str | None = None
    directory: Path | None = None

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
                kept=f"{self._kept}; {len(self.classes)} classes: {_shortened(self.classes)}",
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
        """The results as plain values, for results.json and `--json`."""
        return {
            "chosen_step": self.chosen,
            "scores": self.scores,
            "candidates": self.candidates,
            "moves": self.moves,
            "sentences": list(self.sentences),
        }


def _shortened(names: tuple[str, ...], most: int = 12) -> str:
    """The first names, and that there are more."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


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
        predictions=directory.read_predictions() if results else [],
        inputs={domain: path if Path(path).is_absolute() else "in memory" for domain, path in given.items()},
        classes_title="Largest class of each image" if settings.task == "segmentation" else "Predicted classes",
    )
