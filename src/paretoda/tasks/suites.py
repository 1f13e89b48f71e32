"""Benchmark suites: which data are the source, which the target, and what the protocol fixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from paretoda.tasks import CLASSIFICATION

References = Mapping[str, Mapping[str, float]]
"""Published numbers: name -> column -> fraction."""


@dataclass(frozen=True)
class Part:
    """One domain of a task.

    Args:
        path: An .npz (or several with plus signs between them), a folder or a list file below the folder of the data;
            the name of an embedded domain; or, of one of the paper's benchmarks, the domain's name in facts.toml.
        take: Number of samples, drawn with a fixed seed; None for all.
        of: Number of samples, from the first on, that may be drawn (MNIST-M is made of the last digits of MNIST); None
            for all.
        benchmark: The paper's benchmark that the domain belongs to, in any layout; None for other suites.
        ordered: Whether the samples of an .npz keep their order, as frames of a drive do; others are shuffled with a
            fixed seed.
        classes: Names of the classes that are kept, in this order; samples of others are left out, and pixels of others
            ignored. None for all.
        unknown: Names of further classes whose samples are taken and labelled "unknown", for open label sets.
    """

    path: str
    take: int | None = None
    of: int | None = None
    benchmark: str | None = None
    ordered: bool = False
    classes: tuple[str, ...] | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class SuiteTask:
    """From one domain, or from several, to another.

    Args:
        source: The labelled domain; several domains as a tuple.
        target: The unlabelled domain; its labels are used for the table only.
        settings: Settings of every run on this task.
        test: Data that models are measured on; None for the target. Their labels are used for the table only.
        labels: Number of target samples of each class whose labels are given, drawn with the seed of the run. They are
            neither among the unlabelled target nor measured.
    """

    source: Part | tuple[Part, ...]
    target: Part
    settings: Mapping[str, Any] = field(default_factory=dict)
    test: Part | None = None
    labels: int = 0

    @property
    def sources(self) -> tuple[Part, ...]:
        """The labelled domains."""
        return (self.source,) if isinstance(self.source, Part) else self.source


@dataclass(frozen=True)
class Suite:
    """Tasks that are reported together.

    Args:
        about: One line about the suite.
        tasks: Name -> task.
        measure: The measure of its tables: "accuracy", "mean_class_accuracy", "h_score", "miou" or "r2".
        task: Name of the task of all its runs.
        references: Published numbers, with a column for each task.
        reference_stds: Published standard deviations of those numbers, where there are any.
        class_references: Published numbers with a column for each class, for a suite with one task.
    """

    about: str
    tasks: Mapping[str, SuiteTask]
    measure: str = "accuracy"
    task: str = CLASSIFICATION
    references: References = field(default_factory=dict)
    reference_stds: References = field(default_factory=dict)
    class_references: References = field(default_factory=dict)


def make_sources(parts: Mapping[str, Part], **settings: Any) -> dict[str, SuiteTask]:
    """Return a task for every domain as the target of all others, named by their letters: AC-P."""
    tasks = {}
    for target in parts:
        letters = [letter for letter in parts if letter != target]
        name = f"{''.join(letters)}-{target}"
        tasks[name] = SuiteTask(tuple(parts[letter] for letter in letters), parts[target], settings)
    return tasks


def make_pairs(parts: Mapping[str, Part], **settings: Any) -> dict[str, SuiteTask]:
    """Return a task for every ordered pair of domains, named by their letters."""
    return {f"{a}-{b}": SuiteTask(parts[a], parts[b], settings) for a, b in permutations(parts, 2)}
