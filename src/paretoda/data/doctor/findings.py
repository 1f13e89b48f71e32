"""Findings of the doctor about data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from paretoda.data.samples import SampleSet
from paretoda.errors import DataError, RunError

Severity = Literal["error", "warning", "info"]
Result = TypeVar("Result")
_CAP = 20_000


@dataclass(frozen=True)
class Finding:
    """One fact about the data.

    Args:
        severity: An error stops `adapt`, a warning may cost accuracy, information is good to know.
        domain: The data concerned: "source", "target", "both", "run", or a benchmark or one of its domains.
        message: The fact, and what to do, in one sentence.
    """

    severity: Severity
    domain: str
    message: str


def find_shared_samples(source: SampleSet, target: SampleSet, what: str) -> list[Finding]:
    """Return a warning where the target has samples of the source.

    Args:
        source: Samples of the source, of which at most 20,000 are compared.
        target: Samples of the target, of which at most 20,000 are compared.
        what: What the message calls the samples.
    """
    known = set(source.digests(range(min(len(source), _CAP))))
    digests = target.digests(range(min(len(target), _CAP)))
    same = [place for place, digest in enumerate(digests) if digest in known]
    if not same:
        return []
    text = (
        f"{len(same)} of {len(digests)} target {what} are also in the source, for example "
        f"{target.names(same[:1])[0]}; remove them, or the gap looks smaller than it is."
    )
    return [Finding("warning", "both", text)]


def attempt(work: Callable[[], Result], domain: str, found: list[Finding]) -> Result | None:
    """Return the result of the work, or None after its error has become a finding."""
    try:
        return work()
    except (DataError, RunError) as error:
        found.append(Finding("error", domain, f"{error}."))
        return None


def sort_findings(found: list[Finding]) -> list[Finding]:
    """Return the findings, errors first, then warnings, otherwise in their order."""
    return sorted(found, key=lambda finding: get_args(Severity).index(finding.severity))
