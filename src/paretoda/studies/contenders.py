"""Studies that are benchmarks: contenders from settings alone, resumable, on the benchmark's own runner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paretoda.bench.contenders import Contender, RunSpec, plan, select_variants
from paretoda.bench.jobs import Bench
from paretoda.bench.runner import run_local
from paretoda.bench.store import Row
from paretoda.bench.suites import find_suite
from paretoda.report.tables import Cell, Table, make_table
from paretoda.studies.page import Grid, Section
from paretoda.studies.request import StudyRequest


def run_contenders(
    ask: StudyRequest, wanted: Mapping[str, Sequence[Contender]], tasks: Mapping[str, Sequence[str]]
) -> list[Row]:
    """The results of every contender.

    Args:
        ask: seeds, steps, jobs, data, directory.
        wanted: suite -> its contenders.
        tasks: suite -> names of its tasks.
    """
    specs: list[RunSpec] = []
    for suite, contenders in wanted.items():
        own = [Contender(one.name, set_steps(ask, one.settings)) for one in contenders]
        specs += plan(suite, find_suite(suite), own, seeds=ask.seeds, tasks=tasks[suite])
    bench = Bench(specs, ask.directory, ask.folder(tuple(wanted)))
    run_local(bench, ask.jobs, ask.tell)
    return select_variants(bench.rows())


def set_steps(ask: StudyRequest, settings: Mapping[str, Any], default: int | None = None) -> dict[str, Any]:
    """The settings with the number of steps that was asked for, or else the study's own."""
    steps = ask.steps or default
    return {**settings, **({} if steps is None else {"steps": steps})}


def make_tables(rows: Sequence[Row], measure: str) -> tuple[Table, Table]:
    """Of the models chosen without target labels, and after the last step."""
    return make_table(rows, measure=measure), make_table(rows, kind="last", measure=measure)


def make_accuracy_section(heading: str, table: Table, columns: Mapping[str, Mapping[str, str]]) -> Section:
    """A table of accuracies with further columns to the left.

    Args:
        heading: of the section.
        table: the accuracies.
        columns: heading -> row -> text.
    """
    tasks = list(table.columns) if len(table.columns) == 1 else [*table.columns, "average"]
    cells = {name: table.cells(name)[: len(tasks)] for name in table.rows}
    bold = set()
    for place in range(len(tasks)):
        shown = {name: _shown(cells[name][place]) for name in table.rows}
        best = max(shown.values(), default=0.0)
        bold |= {(i, 1 + len(columns) + place) for i, name in enumerate(table.rows) if 0 < shown[name] == best}
    rows = [
        [name, *(texts.get(name, "") for texts in columns.values()), *(str(cell or "") for cell in cells[name])]
        for name in table.rows
    ]
    return Section(heading, [table.caption], Grid(["", *columns, *tasks], rows, frozenset(bold)))


def _shown(cell: Cell | None) -> float:
    return round(100 * cell.mean, 1) if cell else 0.0
