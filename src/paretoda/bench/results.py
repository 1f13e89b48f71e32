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
    style = TableStyle(base=request.base or bench.specs[0].contender.name, references=suite.references)
    rows = select_variants(made)
    tables = [
        _write_table(out / kind, make_table(rows, kind=kind, measure=suite.measure), style)
        for kind in ("chosen", "last")
    ]
    if suite.class_references:
        by_class = replace(style, references=suite.class_references)
        tables.append(_write_table(out / "classes", make_table(split_by_class(rows)), by_class))
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


def split_by_class(rows: Sequence[Row]) -> list[Row]:
    """Return each run's accuracy on each class as if the class were a task, as the papers on VisDA show it.

    A run that failed appears once for each class.

    Args:
        rows: Rows of one task.
    """
    classes = list(dict.fromkeys(name for row in rows for name in row.get("per_class", {}).get("chosen", {})))
    return [{**row, "task": name, "accuracy": _class_accuracy(row, name)} for name in classes for row in rows]


def _class_accuracy(row: Row, name: str) -> dict[str, float | None]:
    return {kind: recalls.get(name) for kind, recalls in row.get("per_class", {}).items()}
