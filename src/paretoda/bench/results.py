"""The results of a bench: tables in three forms, a page, and sentences about tuned weights and failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paretoda.bench.contenders import describe_tuned_weights, select_variants
from paretoda.bench.jobs import Bench, describe_run
from paretoda.bench.request import BenchRequest
from paretoda.bench.store import Row
from paretoda.bench.suites import find_suite
from paretoda.io.files import write_text
from paretoda.report.bench_page import render_bench_page
from paretoda.report.tables import Table, TableStyle, make_table, to_csv, to_latex, to_markdown

_CLASS_MEASURES = {"accuracy": "accuracy", "mean_class_accuracy": "accuracy", "h_score": "accuracy", "miou": "iou"}
"""Measure of a suite -> its measure of one class."""


@dataclass(frozen=True)
class BenchResults:
    """What a bench tells its user.

    Args:
        tables: Tables in Markdown.
        tuned_weights: One sentence for each contender whose loss weights were tuned.
        failures: One sentence for each run that failed.
        runs: Number of runs with a result or an error.
    """

    tables: list[str]
    tuned_weights: list[str]
    failures: list[str]
    runs: int


def write_results(request: BenchRequest, bench: Bench, command: str) -> BenchResults:
    """Write the tables and the page of a bench into its directory.

    Args:
        request: What the user asked for.
        bench: The bench, whose runs have been made.
        command: The command line, for the page.
    """
    suite, out, made = find_suite(request.suite), bench.directory, bench.rows()
    style = TableStyle(
        base=request.base or bench.specs[0].contender.name,
        references=suite.references,
        reference_stds=suite.reference_stds,
    )
    rows = select_variants(made)
    tables = [
        _write_table(out / kind, make_table(rows, kind=kind, measure=suite.measure), style)
        for kind in ("chosen", "last")
    ]
    measure = _CLASS_MEASURES.get(suite.measure, "")
    columns = [name for numbers in suite.class_references.values() for name in numbers]
    if columns and (by_class := split_by_class(rows, measure, columns)):
        published = replace(style, references=suite.class_references, reference_stds={})
        tables.append(_write_table(out / "classes", make_table(by_class, measure=measure), published))
    title = f"ParetoDA bench {out.resolve().name}"
    write_text(
        out / "report.html", render_bench_page(rows, title=title, style=style, command=command, measure=suite.measure)
    )
    failures = [f"{describe_run(row)} failed: {row['error']}" for row in made if "error" in row]
    return BenchResults(tables, describe_tuned_weights(rows), failures, len(made))


def _write_table(path: Path, table: Table, style: TableStyle) -> str:
    """Write a table as Markdown, LaTeX and CSV; return its Markdown."""
    text = to_markdown(table, style)
    for suffix, form in (("md", text), ("tex", to_latex(table, style)), ("csv", to_csv(table))):
        write_text(path.with_suffix(f".{suffix}"), form)
    return text


def split_by_class(rows: Sequence[Row], measure: str = "accuracy", first: Sequence[str] = ()) -> list[Row]:
    """Return each run's value of each class as if the class were a task, as the papers show it.

    A run that failed appears once for each class. A class without a value in a run that did not fail, because the test
    images do not have it, has no row.

    Args:
        rows: Rows of one task.
        measure: Name of the value of a class.
        first: Classes that come first, in this order.
    """
    found = dict.fromkeys(name for row in rows for name in row.get("per_class", {}).get("chosen", {}))
    classes = [name for name in dict.fromkeys([*first, *found]) if name in found]
    return [
        {**row, "task": name, measure: _class_values(row, name)}
        for name in classes
        for row in rows
        if "error" in row or _class_values(row, name).get("chosen") is not None
    ]


def _class_values(row: Row, name: str) -> dict[str, float | None]:
    return {kind: values.get(name) for kind, values in row.get("per_class", {}).items()}
