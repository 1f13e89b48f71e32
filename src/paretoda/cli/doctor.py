"""`paretoda doctor`: what is wrong with the data, before an hour is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from paretoda.cli.console import Console
from paretoda.data import PairSettings, examine
from paretoda.data.doctor.findings import Finding
from paretoda.data.segmentation import ScenePairSettings, examine_scenes
from paretoda.errors import DataError

_SIGNS = {"error": "ERROR", "warning": "warning", "info": "note"}


def run_doctor(  # noqa: PLR0913  (options, not arguments)
    screen: Console,
    source: str | None,
    target: str | None,
    suite: str | None,
    path: Path | None,
    *,
    task: str = "classification",
    source_table: str | None = None,
    skip_bad: bool = False,
) -> int:
    """Print every finding on two domains or on a benchmark; 2 where there is an error, otherwise 0."""
    if suite is not None:
        if source is not None or target is not None or source_table is not None or skip_bad:
            raise DataError(
                "--suite looks at a benchmark's folder; leave out --source, --target, --source-table and --skip-bad"
            )
        return _suite(screen, suite, path)
    if path is not None:
        raise DataError(f"give --suite NAME for the benchmark in {path}, or --source and --target")
    if source is None or target is None:
        raise DataError("give --source and --target, or --suite NAME and the folder of a benchmark")
    progress = screen.progress
    if task == "segmentation":
        scenes = ScenePairSettings(source_table=source_table, skip_bad=skip_bad)
        return _pair(screen, examine_scenes(source, target, scenes, progress))
    if source_table is not None:
        raise DataError("--source-table: only for --task segmentation")
    return _pair(screen, examine(source, target, PairSettings(skip_bad=skip_bad), progress))


def _pair(screen: Console, found: Sequence[Finding]) -> int:
    screen.progress.stop()
    errors = _show(screen, found, "adapt accepts these data", "adapt would refuse these data")
    screen.finish(lambda: _facts(found))
    return 2 if errors else 0


def _suite(screen: Console, suite: str, path: Path | None) -> int:
    from paretoda.bench.suite_doctor import examine_suite  # noqa: PLC0415  (two domains need no benchmark)
    from paretoda.bench.suites import data_folder  # noqa: PLC0415

    def checked(domain: str, done: int, total: int) -> None:
        screen.progress(f"checking {domain}", done, total)

    report = examine_suite(suite, path if path is not None else data_folder(), checked)
    screen.progress.stop()
    if report.places:
        rows = [
            [domain, str(report.images[domain]), str(report.expected[domain]), place.layout, str(place.path)]
            for domain, place in report.places.items()
        ]
        columns = {"domain": "left", "images": "right", "published": "right", "layout": "left", "where": "left"}
        screen.table(columns, rows)
        screen.result()
    broken = f"numbers on this copy of {suite} compare with nobody's" if report.places else f"{suite} is not there"
    errors = _show(screen, report.findings, f"this is {suite} as published", broken)
    domains = {
        domain: {"images": report.images[domain], "published": report.expected[domain], "path": str(place.path)}
        for domain, place in report.places.items()
    }
    screen.finish(lambda: {"suite": suite, "domains": domains, **_facts(report.findings)})
    return 2 if errors else 0


def _show(screen: Console, found: Sequence[Finding], good: str, bad: str) -> int:
    """Print the findings and the verdict; the number of errors."""
    rows = [[_SIGNS[finding.severity], finding.domain, finding.message] for finding in found]
    if rows:
        screen.table({"": "left", "where": "left", "what was found, and what to do": "left"}, rows)
        screen.result()
    errors, warnings = _count(found, "error"), _count(found, "warning")
    screen.result(
        f"{errors} {'error' if errors == 1 else 'errors'}, {warnings} "
        f"{'warning' if warnings == 1 else 'warnings'}: {bad if errors else good}."
    )
    return errors


def _facts(found: Sequence[Finding]) -> dict[str, object]:
    return {
        "errors": _count(found, "error"),
        "warnings": _count(found, "warning"),
        "findings": [asdict(finding) for finding in found],
    }


def _count(found: Sequence[Finding], severity: str) -> int:
    return sum(finding.severity == severity for finding in found)
