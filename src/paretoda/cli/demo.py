"""`paretoda demo`: printed digits to real handwriting, four ways, and the accuracy of each."""

# The imports inside functions keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, Quiet
from paretoda.errors import RunError
from paretoda.io.files import write_json, write_text

if TYPE_CHECKING:
    from paretoda.bench.contenders import RunSpec
    from paretoda.bench.jobs import Bench
    from paretoda.bench.store import Row
    from paretoda.report.page import Comparison

_STEPS = 100
_WAYS: dict[str, dict[str, str]] = {
    "source-only": {"method": "source-only"},
    "DANN": {"method": "dann+none", "scheme": "linear"},
    "DANN + TCM, plain sum": {"method": "dann+tcm", "scheme": "linear"},
    "DANN + TCM + propagation, ParetoDA": {"method": "dann+tcm+propagation", "scheme": "paretoda"},
}
"""Name -> the settings in which the ways differ."""

_EXAMPLE = "DANN + TCM + propagation, ParetoDA"
_COLUMNS = ("", "oracle, label-free choice", "oracle, last step")
_MOST_WORKERS = 4


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="directory for report.html and results.json")] = Path(
        "paretoda-demo"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="runs of each method")] = 3,
    steps: Annotated[int | None, typer.Option(min=5, help="steps of each run [default: 100]")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Printed digits to real handwriting, without any data of yours: a table and a report in about a minute."""
    from paretoda.bench.jobs import Bench

    with Console(quiet=quiet, as_json=json) as console:
        steps = steps or _STEPS
        bench = Bench(_plan(seeds, steps), out)
        _show(console, bench, _train(console, bench, seeds, steps), seeds, steps)


def _train(console: Console, bench: Bench, seeds: int, steps: int) -> list[Row]:
    """Run every way with every seed and return the results."""
    from paretoda.bench.runner import run_local

    bench.directory.mkdir(parents=True, exist_ok=True)  # a place that cannot be written to fails now, not later
    done = len(bench.specs) - len(bench.missing())
    console.say(f"Printed digits to handwriting: {len(_WAYS)} ways, {seeds} seeds, {steps} steps each.")
    if done:
        console.say(
            f"{done} of the {len(bench.specs)} runs are in {bench.directory} already; remove it to start again."
        )
    jobs = min(os.cpu_count() or 1, _MOST_WORKERS)
    rows = run_local(bench, jobs, console.progress)
    console.progress.stop()
    for row in rows:
        if "error" in row:
            raise RunError(f"the run {row['name']}, seed {row['seed']} failed: {row['error']}")
    return rows


def _show(console: Console, bench: Bench, rows: list[Row], seeds: int, steps: int) -> None:
    """Print the table, and write the page and results.json."""
    from paretoda.report.page import Comparison

    out = bench.directory
    table = [[name, *_format_accuracies([row for row in rows if row["name"] == name])] for name in _WAYS]
    console.result()
    console.table({_COLUMNS[0]: "left", _COLUMNS[1]: "right", _COLUMNS[2]: "right"}, table)
    note = (
        f"Accuracy on all handwritten digits in %, mean ± standard deviation over {seeds} "
        f"{'seed' if seeds == 1 else 'seeds'}, {steps} steps each; oracle: target labels were used for this table, "
        "never for training or choosing."
    )
    console.result()
    console.result(note)
    write_text(out / "report.html", _make_page(bench, Comparison("Target accuracy", _COLUMNS, table, note)))
    write_json(out / "results.json", values := _results_as_json(rows, seeds, steps))
    console.result(f"report: {out / 'report.html'}")
    console.finish(lambda: {"report": str(out / "report.html"), **values})


def _plan(seeds: int, steps: int) -> list[RunSpec]:
    """Return all runs, the slow ones first; the files of one of them are kept for the page."""
    from paretoda.bench.contenders import Contender, plan
    from paretoda.bench.suites import SUITES

    same: dict[str, Any] = {"batch_size": 32, "steps": steps, "evaluate_every": max(1, steps // 5)}
    contenders = [Contender(name, {**same, **way}) for name, way in reversed(_WAYS.items())]
    specs = plan("digits", SUITES["digits"], contenders, seeds=seeds)
    return [replace(spec, keep=spec.contender.name == _EXAMPLE and spec.seed == 0) for spec in specs]


def _make_page(bench: Bench, comparison: Comparison) -> str:
    """Return the page: the table, and below it the example run with its pictures."""
    from paretoda.bench.contenders import run_folder
    from paretoda.bench.loading import load_task
    from paretoda.bench.suites import SUITES
    from paretoda.report.page import render_run_page
    from paretoda.run.build import pick_device
    from paretoda.run.directory.directory import RunDirectory
    from paretoda.run.finish import add_pictures
    from paretoda.run.result import read_facts
    from paretoda.tasks.loading import load_run

    example = next(spec for spec in bench.specs if spec.keep)
    directory = RunDirectory(run_folder(bench.directory, example))
    facts = read_facts(directory, "ParetoDA demo: printed digits to handwriting")
    task, model = load_run(directory.path, pick_device("cpu"))
    loaded = load_task(task, SUITES["digits"].tasks[example.task], None, bench.work)
    inputs = task.open(directory.read_config()[0], loaded.source, loaded.target, pick_device("cpu"))
    return render_run_page(add_pictures(task, facts, model, inputs), comparison)


def _format_accuracies(rows: list[Row]) -> list[str]:
    return [_format_spread([row["accuracy"][kind] for row in rows]) for kind in ("chosen", "last")]


def _format_spread(values: list[float]) -> str:
    shown = f"{100 * mean(values):.1f}"
    return f"{shown} ± {100 * stdev(values):.1f}" if len(values) > 1 else shown


def _results_as_json(rows: list[Row], seeds: int, steps: int) -> dict[str, Any]:
    """Return everything that was measured as plain values; accuracies are fractions 0..1."""
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
            for row in sorted(rows, key=lambda row: (list(_WAYS).index(row["name"]), row["seed"]))
        ],
    }
