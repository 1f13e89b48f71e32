"""`paretoda demo`: printed digits to real handwriting, four ways, and what each of them measured."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, stdev
from typing import Any

from paretoda.cli.demo_runs import STEPS, WAYS, DemoRun, take_runs
from paretoda.cli.screen import Screen
from paretoda.report.page import Comparison, run_page
from paretoda.training.files import write_json, write_text

_COLUMNS = ("", "oracle, label-free choice", "oracle, last step")


def run_demo(screen: Screen, out: Path, *, seeds: int, steps: int | None) -> None:
    """Train every way with every seed, print the table, write the page."""
    steps = steps or STEPS
    out.mkdir(parents=True, exist_ok=True)  # a place that cannot be written to is better known now than in a minute
    screen.say(f"Printed digits to handwriting: {len(WAYS)} ways, {seeds} seeds, {steps} steps each.")
    runs = take_runs(seeds, steps, lambda done, total: screen.progress("training", done, total))
    screen.progress.stop()
    rows = [[name, *_accuracies([run for run in runs if run.way == name])] for name in WAYS]
    screen.result()
    screen.table({_COLUMNS[0]: "left", _COLUMNS[1]: "right", _COLUMNS[2]: "right"}, rows)
    note = (
        f"Accuracy on all handwritten digits in %, mean ± standard deviation over {seeds} "
        f"{'seed' if seeds == 1 else 'seeds'}, {steps} steps each; oracle: target labels were used for this table, "
        "never for training or choosing."
    )
    screen.result()
    screen.result(note)
    comparison = Comparison("Target accuracy", _COLUMNS, rows, note)
    example = next(run.facts for run in runs if run.facts is not None)
    write_text(out / "report.html", run_page(example, comparison))
    write_json(out / "results.json", values := _values(runs, seeds, steps))
    screen.result(f"report: {out / 'report.html'}")
    screen.finish(lambda: {"report": str(out / "report.html"), **values})


def _accuracies(runs: list[DemoRun]) -> list[str]:
    return [_spread([run.oracle_chosen for run in runs]), _spread([run.oracle_last for run in runs])]


def _spread(values: list[float]) -> str:
    shown = f"{100 * mean(values):.1f}"
    return f"{shown} ± {100 * stdev(values):.1f}" if len(values) > 1 else shown


def _values(runs: list[DemoRun], seeds: int, steps: int) -> dict[str, Any]:
    """Everything that was measured, as plain values; fractions 0..1."""
    return {
        "seeds": seeds,
        "steps": steps,
        "runs": [
            {
                "way": run.way,
                "seed": run.seed,
                "chosen_step": run.chosen,
                "oracle_accuracy_chosen": run.oracle_chosen,
                "oracle_accuracy_last": run.oracle_last,
            }
            for run in runs
        ],
    }
