"""`paretoda demo`: printed digits to real handwriting, four ways, and what each of them measured."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from paretoda.bench.contenders import Contender, RunSpec, plan, run_folder
from paretoda.bench.jobs import Bench
from paretoda.bench.runner import run_local
from paretoda.bench.store import Row
from paretoda.bench.suites import SUITES
from paretoda.cli.console import Console
from paretoda.errors import RunError
from paretoda.io.files import write_json, write_text
from paretoda.report.page import Comparison, render_run_page

STEPS = 100
WAYS: dict[str, dict[str, str]] = {
    "source-only": {"method": "source-only"},
    "DANN": {"method": "dann+none", "scheme": "linear"},
    "DANN + TCM, plain sum": {"method": "dann+tcm", "scheme": "linear"},
    "DANN + TCM + propagation, ParetoDA": {"method": "dann+tcm+propagation", "scheme": "paretoda"},
}
"""What is compared: all else is the same."""

_EXAMPLE = "DANN + TCM + propagation, ParetoDA"
_COLUMNS = ("", "oracle, label-free choice", "oracle, last step")
_MOST_WORKERS = 4


def run_demo(screen: Console, out: Path, *, seeds: int, steps: int | None) -> None:
    """Train every way with every seed, print the table, write the page."""
    steps = steps or STEPS
    bench = Bench(_specs(seeds, steps), out)
    out.mkdir(parents=True, exist_ok=True)  # a place that cannot be written to is better known now than in a minute
    known = len(bench.specs) - len(bench.missing())
    screen.say(f"Printed digits to handwriting: {len(WAYS)} ways, {seeds} seeds, {steps} steps each.")
    if known:
        screen.say(f"{known} of the {len(bench.specs)} runs are in {out} already; remove it to begin anew.")
    jobs = min(os.cpu_count() or 1, _MOST_WORKERS)
    rows = run_local(bench, jobs, lambda done, total: screen.progress("training", done, total))
    screen.progress.stop()
    for row in rows:
        if "error" in row:
            raise RunError(f"the run {row['name']}, seed {row['seed']} failed: {row['error']}")
    table = [[name, *_accuracies([row for row in rows if row["name"] == name])] for name in WAYS]
    screen.result()
    screen.table({_COLUMNS[0]: "left", _COLUMNS[1]: "right", _COLUMNS[2]: "right"}, table)
    note = (
        f"Accuracy on all handwritten digits in %, mean ± standard deviation over {seeds} "
        f"{'seed' if seeds == 1 else 'seeds'}, {steps} steps each; oracle: target labels were used for this table, "
        "never for training or choosing."
    )
    screen.result()
    screen.result(note)
    write_text(out / "report.html", _page(bench, Comparison("Target accuracy", _COLUMNS, table, note)))
    write_json(out / "results.json", values := _values(rows, seeds, steps))
    screen.result(f"report: {out / 'report.html'}")
    screen.finish(lambda: {"report": str(out / "report.html"), **values})


def _specs(seeds: int, steps: int) -> list[RunSpec]:
    """All runs, the slow ones first; the files of one are kept for the page."""
    same: dict[str, Any] = {"batch_size": 32, "steps": steps, "evaluate_every": max(1, steps // 5)}
    contenders = [Contender(name, {**same, **way}) for name, way in reversed(WAYS.items())]
    specs = plan("digits", SUITES["digits"], contenders, seeds=seeds)
    return [replace(spec, keep=spec.contender.name == _EXAMPLE and spec.seed == 0) for spec in specs]


def _page(bench: Bench, comparison: Comparison) -> str:
    """The table, and below it the example run with its pictures."""
    from paretoda.bench.loading import load  # noqa: PLC0415  (torch is not needed before the end)
    from paretoda.run.directory.directory import RunDirectory  # noqa: PLC0415
    from paretoda.run.result import read_facts  # noqa: PLC0415
    from paretoda.tasks.classification.build import pick_device  # noqa: PLC0415
    from paretoda.tasks.classification.inputs import open_inputs  # noqa: PLC0415
    from paretoda.tasks.classification.predictor import load_predictor  # noqa: PLC0415
    from paretoda.tasks.classification.run import pictures_of  # noqa: PLC0415

    example = next(spec for spec in bench.specs if spec.keep)
    directory = RunDirectory(run_folder(bench.directory, example))
    facts = read_facts(directory, "ParetoDA demo: printed digits to handwriting")
    loaded = load(SUITES["digits"].tasks[example.task], None, bench.work)
    settings, _ = directory.read_config()
    inputs = open_inputs(settings, loaded.source, loaded.target, pick_device("cpu"), lambda _: None)
    model = load_predictor(directory.model, directory.description)
    return render_run_page(replace(facts, pictures=pictures_of(model, inputs, facts)), comparison)


def _accuracies(rows: list[Row]) -> list[str]:
    return [_spread([row["accuracy"][kind] for row in rows]) for kind in ("chosen", "last")]


def _spread(values: list[float]) -> str:
    shown = f"{100 * mean(values):.1f}"
    return f"{shown} ± {100 * stdev(values):.1f}" if len(values) > 1 else shown


def _values(rows: list[Row], seeds: int, steps: int) -> dict[str, Any]:
    """Everything that was measured, as plain values; fractions 0..1."""
    return {
        "seeds": seeds,
        "steps": steps,
        "runs": [
            {
                "way": row["name"],
                "seed": row["seed"],
                "chosen_step": row["chosen_step"],
                "oracle_accuracy_chosen": row["accuracy"]["chosen"],
                "oracle_accuracy_last": row["accuracy"]["last"],
            }
            for row in sorted(rows, key=lambda row: (list(WAYS).index(row["name"]), row["seed"]))
        ],
    }
