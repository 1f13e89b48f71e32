"""What is known of the paper's benchmarks: their domains, their classes, and how many images each has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from paretoda.core.names import unknown
from paretoda.data.errors import DataError
from paretoda.job.config_file import read_toml


@dataclass(frozen=True)
class Facts:
    """Of one benchmark.

    Args:
        classes: names of the folders of all domains.
        images: domain -> how many.
        per_class: domain -> class -> how many; only domains whose numbers are certain.
    """

    classes: tuple[str, ...]
    images: Mapping[str, int]
    per_class: Mapping[str, Mapping[str, int]]


@lru_cache
def known_facts() -> dict[str, Facts]:
    """Suite -> its facts, from facts.toml beside this file."""
    return {
        suite: Facts(
            tuple(known["classes"]),
            known["images"],
            {domain: dict(zip(known["classes"], counts, strict=True)) for domain, counts in known["per_class"].items()},
        )
        for suite, known in read_toml(Path(__file__).with_name("facts.toml")).items()
    }


def facts_of(suite: str) -> Facts:
    """The facts of that suite."""
    facts = known_facts()
    if suite not in facts:
        raise DataError(f"{unknown('benchmark with known numbers', suite, facts)} Or give --source and --target")
    return facts[suite]
