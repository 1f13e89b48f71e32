"""Studies that are benchmarks: contenders from settings only, resumable, on the benchmark's own runner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paretoda.bench.contenders import Contender, RunSpec, plan, select_variants
from paretoda.bench.jobs import Bench
from paretoda.bench.request import find_task_data
from paretoda.bench.runner import run_local
from paretoda.bench.store import Row
from paretoda.bench.suites import find_suite
from paretoda.report.tables import Cell, Table, make_table
from paretoda.studies.page import Grid, Section
from paretoda.studies.request import StudyRequest
from paretoda.studies.settings import check_runs, merge_settings, refuse_without_effect


def run_contenders(
    request: StudyRequest, wanted: Mapping[str, Sequence[Contender]], tasks: Mapping[str, Sequence[str]]
) -> list[Row]:
    """Run the contenders that have no result yet, and return the results of all.

    Args:
        request: Settings, seeds, jobs, data, directory.
        wanted: Suite -> its contenders, with what the study sets itself.
        tasks: Suite -> names of its tasks.

    Raises:
        SettingsError: A setting of the user has no effect here, or contradicts another.
        DataError: Files are missing.
    """
    refuse_without_effect(request, [one.settings for own in wanted.values() for one in own], wanted)
    needed = [find_suite(suite).tasks[task] for suite in wanted for task in tasks[suite]]
    data = find_task_data(needed, request.data)
    specs: list[RunSpec] = []
    for suite, contenders in wanted.items():
        merged = [Contender(one.name, merge_settings(request, suite, one.settings)) for one in contenders]
        check_runs(request, suite, tasks[suite], [one.settings for one in merged], data)
        specs += plan(suite, find_suite(suite), merged, seeds=request.seeds, tasks=tasks[suite])
    bench = Bench(specs, request.directory, data)
    run_local(bench, request.jobs, request.tell)
    return select_variants(bench.rows())


def make_tables(rows: Sequence[Row], measure: str) -> tuple[Table, Table]:
    """Return the tables of the models chosen without target labels, and after the last step."""
    return make_table(rows, measure=measure), make_table(rows, kind="last", measure=measure)


def make_accuracy_section(heading: str, table: Table, columns: Mapping[str, Mapping[str, str]]) -> Section:
    """Return a table of accuracies with further columns to the right.

    Args:
        heading: Heading of the section.
        table: The accuracies.
        columns: Heading -> row -> text.
    """
    tasks = list(table.columns) if len(table.columns) == 1 else [*table.columns, "average"]
    cells = {name: table.cells(name)[: len(tasks)] for name in table.rows}
    bold = set()
    for place in range(len(tasks)):
        shown = {name: _round_percent(cells[name][place]) for name in table.rows}
        best = max(shown.values(), default=0.0)
        bold |= {(i, 1 + place) for i, name in enumerate(table.rows) if 0 < shown[name] == best}
    rows = [
        [name, *(str(cell or "") for cell in cells[name]), *(texts.get(name, "") for texts in columns.values())]
        for name in table.rows
    ]
    return Section(heading, [table.caption], Grid(["", *tasks, *columns], rows, frozenset(bold)))


def _round_percent(cell: Cell | None) -> float:
    return round(100 * cell.mean, 1) if cell else 0.0
