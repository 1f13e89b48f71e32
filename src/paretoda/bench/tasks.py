"""What a suite is made of: domains, tasks from one to another, and what the tables show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

References = Mapping[str, Mapping[str, float]]
"""Published numbers: name -> column -> fraction."""


@dataclass(frozen=True)
class Part:
    """One domain of a task.

    Args:
        path: an .npz, a folder or a list file below the data's folder; the name of an embedded domain; or, of one of
            the paper's benchmarks, the domain's name in facts.toml.
        take: so many samples, drawn with a fixed seed; None: all.
        of: only the first so many samples may be drawn (MNIST-M is made of the last digits of MNIST); None: all.
        benchmark: the paper's benchmark that it is a domain of, in whatever layout; None elsewhere.
    """

    path: str
    take: int | None = None
    of: int | None = None
    benchmark: str | None = None


@dataclass(frozen=True)
class Task:
    """From one domain to another.

    Args:
        source: with labels.
        target: its labels are for the table only.
        settings: that this task needs, whoever runs on it.
        test: what is measured on, in segmentation; its labels are for the table only.
    """

    source: Part
    target: Part
    settings: Mapping[str, Any] = field(default_factory=dict)
    test: Part | None = None


@dataclass(frozen=True)
class Suite:
    """Tasks that are reported together.

    Args:
        about: one line.
        tasks: by name.
        measure: what its tables show: "accuracy", "mean_class_accuracy" or, in segmentation, "miou".
        references: published numbers, a column for each task.
        class_references: published numbers, a column for each class; a suite with one task may have them.
    """

    about: str
    tasks: Mapping[str, Task]
    measure: str = "accuracy"
    references: References = field(default_factory=dict)
    class_references: References = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The task of all its tasks: classification or segmentation."""
        return "segmentation" if self.measure == "miou" else "classification"


def pairs(parts: Mapping[str, Part], **settings: Any) -> dict[str, Task]:
    """Every ordered pair of the domains, named by their letters."""
    return {f"{a}-{b}": Task(parts[a], parts[b], settings) for a, b in permutations(parts, 2)}
