"""`paretoda doctor`: what is wrong with the data, before an hour is lost."""

from __future__ import annotations

from dataclasses import asdict

from paretoda.cli.screen import Screen
from paretoda.data import PairSettings, examine

_SIGNS = {"error": "ERROR", "warning": "warning", "info": "note"}


def run_doctor(screen: Screen, source: str, target: str, *, skip_bad: bool = False) -> int:
    """Print every finding; 2 where `adapt` would refuse the data, otherwise 0."""

    def checked(done: int, total: int) -> None:
        screen.progress("checking images", done, total)

    found = examine(source, target, PairSettings(skip_bad=skip_bad), checked)
    screen.progress.stop()
    rows = [[_SIGNS[finding.severity], finding.domain, finding.message] for finding in found]
    if rows:
        screen.table({"": "left", "where": "left", "what was found, and what to do": "left"}, rows)
        screen.result()
    errors = sum(finding.severity == "error" for finding in found)
    warnings = sum(finding.severity == "warning" for finding in found)
    verdict = "adapt would refuse these data" if errors else "adapt accepts these data"
    screen.result(
        f"{errors} {'error' if errors == 1 else 'errors'}, {warnings} "
        f"{'warning' if warnings == 1 else 'warnings'}: {verdict}."
    )
    screen.finish(lambda: {"errors": errors, "warnings": warnings, "findings": [asdict(finding) for finding in found]})
    return 2 if errors else 0
