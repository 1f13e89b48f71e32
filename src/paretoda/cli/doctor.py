"""`paretoda doctor`: what is wrong with the data, before an hour is lost."""

# The imports inside functions keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, SkipBad, Task, read_sources
from paretoda.errors import DataError
from paretoda.tasks import CLASSIFICATION, find_task

if TYPE_CHECKING:
    from paretoda.data.doctor.findings import Finding

_SIGNS = {"error": "ERROR", "warning": "warning", "info": "note"}


def doctor(  # noqa: PLR0913  (options, not arguments)
    path: Annotated[
        Path | None, typer.Argument(metavar="[PATH]", help="with --suite: its folder (default $PARETODA_DATA)")
    ] = None,
    *,
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="DATA", help="labelled data; repeat it for several sources, or give 'FOLDER/*'"),
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="DATA", help="unlabelled data")] = None,
    target_labels: Annotated[
        str | None, typer.Option(metavar="DATA", help="the few target samples whose labels are known, if any")
    ] = None,
    given_run: Annotated[
        str | None,
        typer.Option("--from", metavar="RUN", help="finished run that is adapted to the target, in place of --source"),
    ] = None,
    suite: Annotated[
        str | None, typer.Option(metavar="NAME", help="compare PATH with office31, office-home or visda2017")
    ] = None,
    task: Task = CLASSIFICATION,
    source_table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="segmentation: table of the source's labels (`paretoda list tables`)"),
    ] = None,
    skip_bad: SkipBad = False,
    json: Json = False,
) -> None:
    """Find out what is wrong with the data, before an hour is lost; exit code 2 where adapt would refuse them.

    With --suite: whether a copy of a benchmark has the images that the published numbers were measured on.
    """
    with Console(as_json=json) as console:
        if suite is not None:
            others = (source, target, target_labels, given_run, source_table)
            if skip_bad or any(others):
                raise DataError(
                    "--suite examines a benchmark's folder; leave out --source, --target, --target-labels, --from, "
                    "--source-table and --skip-bad"
                )
            errors = _examine_suite(console, suite, path)
        elif path is not None:
            raise DataError(f"give --suite NAME for the benchmark in {path}, or --source and --target")
        elif given_run is not None:
            if target is None or any((source, target_labels, source_table)):
                raise DataError("--from takes --target and no --source, --target-labels or --source-table")
            findings = find_task(task).examine_given_run(
                given_run, target, skip_bad=skip_bad, progress=console.progress
            )
            errors = _finish(console, findings)
        elif not source or target is None:
            raise DataError("give --source and --target, or --suite NAME and the folder of a benchmark")
        else:
            errors = _examine_pair(
                console,
                read_sources(source, target),
                target,
                target_labels,
                task=task,
                source_table=source_table,
                skip_bad=skip_bad,
            )
    raise typer.Exit(2 if errors else 0)


def _examine_pair(
    console: Console,
    source: str | list[str] | None,
    target: str,
    labels: str | None,
    *,
    task: str,
    source_table: str | None,
    skip_bad: bool,
) -> int:
    """Print every finding on two domains and the labelled samples of the target; return the number of errors."""
    from paretoda.data.doctor.findings import sort_findings

    known, tell = find_task(task), console.progress
    known.check_source(source)
    findings = [*known.examine(source, target, table=source_table, skip_bad=skip_bad, progress=tell)]
    if labels is not None:
        findings += known.examine_target_labels(labels, source, target, skip_bad=skip_bad, progress=tell)
        findings = sort_findings(findings)
    return _finish(console, findings)


def _finish(console: Console, findings: Sequence[Finding]) -> int:
    """Print the findings on data that `adapt` is to read; return the number of errors."""
    console.progress.stop()
    errors = _show(console, findings, "adapt accepts these data", "adapt would refuse these data")
    console.finish(lambda: _findings_as_json(findings))
    return errors


def _examine_suite(console: Console, suite: str, path: Path | None) -> int:
    """Print every finding on a copy of a benchmark; return the number of errors."""
    from paretoda.bench.layouts import examine_suite
    from paretoda.bench.suites import find_data_folder

    def progress(domain: str, done: int, total: int) -> None:
        console.progress(f"checking {domain}", done, total)

    report = examine_suite(suite, path if path is not None else find_data_folder(), progress)
    console.progress.stop()
    if report.places:
        rows = [
            [domain, str(report.images[domain]), str(report.expected[domain]), place.layout, str(place.path)]
            for domain, place in report.places.items()
        ]
        columns = {"domain": "left", "images": "right", "published": "right", "layout": "left", "where": "left"}
        console.table(columns, rows)
        console.result()
    broken = (
        f"numbers on this copy of {suite} cannot be compared with others" if report.places else f"{suite} was not found"
    )
    errors = _show(console, report.findings, f"this is {suite} as published", broken)
    domains = {
        domain: {"images": report.images[domain], "published": report.expected[domain], "path": str(place.path)}
        for domain, place in report.places.items()
    }
    console.finish(lambda: {"suite": suite, "domains": domains, **_findings_as_json(report.findings)})
    return errors


def _show(console: Console, findings: Sequence[Finding], good: str, bad: str) -> int:
    """Print the findings and the verdict; return the number of errors."""
    rows = [[_SIGNS[finding.severity], finding.domain, finding.message] for finding in findings]
    if rows:
        console.table({"": "left", "where": "left", "what was found, and what to do": "left"}, rows)
        console.result()
    errors, warnings = _count(findings, "error"), _count(findings, "warning")
    console.result(
        f"{errors} {'error' if errors == 1 else 'errors'}, {warnings} "
        f"{'warning' if warnings == 1 else 'warnings'}: {bad if errors else good}."
    )
    return errors


def _findings_as_json(findings: Sequence[Finding]) -> dict[str, object]:
    return {
        "errors": _count(findings, "error"),
        "warnings": _count(findings, "warning"),
        "findings": [asdict(finding) for finding in findings],
    }


def _count(findings: Sequence[Finding], severity: str) -> int:
    return sum(finding.severity == severity for finding in findings)
