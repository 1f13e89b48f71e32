"""What the doctor says about data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from paretoda.data.errors import DataError

Severity = Literal["error", "warning", "info"]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Finding:
    """One fact about the data.

    Args:
        severity: an error stops `adapt`, a warning may cost accuracy, the rest is good to know.
        domain: which data it concerns: "source", "target", "both", or a benchmark or one of its domains.
        message: the fact, and what to do, in one sentence.
    """

    severity: Severity
    domain: str
    message: str


def attempt(work: Callable[[], Result], domain: str, found: list[Finding]) -> Result | None:
    """The result, or None after the error has become a finding."""
    try:
        return work()
    except DataError as error:
        found.append(Finding("error", domain, f"{error}."))
        return None
