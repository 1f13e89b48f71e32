"""Who takes part in a benchmark, and the runs that this makes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paretoda.bench.tasks import Suite
from paretoda.core.names import unknown
from paretoda.job.presets import for_suite
from paretoda.job.settings import SettingsError, make_settings

ORACLE = "oracle"
"""Among a contender's settings: its source is the target with its labels, the most that anybody could reach."""


@dataclass(frozen=True)
class Contender:
    """A row of the table.

    Args:
        name: of the row.
        settings: that differ from the defaults; "baseline" alone names a shallow one, "oracle" reads target labels.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunSpec:
    """One run of a benchmark: everything that decides its result.

    Args:
        suite: its name.
        task: its name in the suite.
        contender: who runs.
        seed: of the run.
        variant: settings that are tried side by side, of which a validator chooses one for the table.
        keep: whether the run's own files, its model among them, stay in the bench's runs/KEY.
        judge: the validator that chooses among variants; empty: the mean rank of several.
    """

    suite: str
    task: str
    contender: Contender
    seed: int
    variant: Mapping[str, Any] = field(default_factory=dict)
    keep: bool = False
    judge: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """Of the run, as JSON has them; the task adds its own."""
        return as_json(for_suite({**self.contender.settings, **self.variant}, self.suite))

    @property
    def key(self) -> str:
        """Of what decides the result, so not of the contender's name.

        The same settings have the same key, however they were written: 1 or 1.0, a tuple or a list, "dann+im" or two.
        """
        facts = [self.suite, self.task, self.settings, self.seed]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def steps(self) -> int:
        """How much of the progress it is."""
        return 1 if "baseline" in self.contender.settings else make_settings(without_oracle(self.settings)).steps

    @property
    def line(self) -> dict[str, Any]:
        """What every result says of its run."""
        return {
            "key": self.key,
            "suite": self.suite,
            "task": self.task,
            "name": self.contender.name,
            "seed": self.seed,
            "settings": self.settings,
            "variant": dict(self.variant),
            "judge": self.judge,
        }


def run_folder(bench: Path, spec: RunSpec) -> Path:
    """Where a run's own files are kept, in the bench's directory."""
    return bench / "runs" / spec.key


def as_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Checked settings as JSON reads them back: what was given, and always which losses under which scheme."""
    if "baseline" in settings:
        return dict(settings)
    made = make_settings(without_oracle(settings))
    given = made.model_dump(mode="json", exclude_unset=True)
    oracle = {ORACLE: True} if settings.get(ORACLE) else {}
    return {**given, "method": made.method, "target_loss": made.target_loss, "scheme": made.scheme, **oracle}


def without_oracle(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What is a setting of a run: who is trained on target labels is the bench's affair."""
    return {name: value for name, value in settings.items() if name != ORACLE}


def cross(methods: Iterable[str], target_losses: Sequence[str], schemes: Sequence[str], **same: Any) -> list[Contender]:
    """Every method with every target loss under every scheme; what has one loss only has no use for a scheme.

    Args:
        methods: alignments; "a+b" fixes the target loss.
        target_losses: for methods that fix none.
        schemes: for everything with several losses.
        **same: settings of all.
    """
    found: dict[str, Contender] = {}
    for method in methods:
        alignment, _, fixed = method.partition("+")
        losses = [fixed] if fixed else ["none"] if method == "source-only" else list(target_losses)
        for loss in losses:
            alone = (alignment, loss) == ("source-only", "none")
            for scheme in ["linear"] if alone else schemes:
                name = alignment if loss == "none" else f"{alignment}+{loss}"
                name = name if alone else f"{name}, {'sum' if scheme == 'linear' else scheme}"
                settings = {"method": alignment, "target_loss": loss, "scheme": scheme, **same}
                make_settings(settings)
                found.setdefault(name, Contender(name, settings))
    return list(found.values())


def plan(
    name: str,
    suite: Suite,
    contenders: Sequence[Contender],
    *,
    seeds: int,
    tasks: Sequence[str] = (),
    variants: Sequence[Mapping[str, Any]] = ({},),
) -> list[RunSpec]:
    """All runs, seed by seed, so that an early look sees every task and contender.

    Args:
        name: of the suite.
        suite: the tasks.
        contenders: the rows, each with a name of its own.
        seeds: 0..seeds-1.
        tasks: only these; all by default.
        variants: tried by every contender that trains, as far as it does not fix the same settings itself.
    """
    for task in tasks:
        if task not in suite.tasks:
            raise SettingsError(unknown("task", task, suite.tasks))
    names = [contender.name for contender in contenders]
    if double := [name for name in names if names.count(name) > 1]:
        raise SettingsError(f"two contenders are called {double[0]!r}; give one of them another name")
    return [
        RunSpec(name, task, contender, seed, variant)
        for seed in range(seeds)
        for task in dict.fromkeys(tasks or suite.tasks)
        for contender in contenders
        for variant in _own_variants(contender, variants)
    ]


def _own_variants(contender: Contender, variants: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Without what the contender fixes, each once."""
    if "baseline" in contender.settings:
        return [{}]
    found: list[dict[str, Any]] = []
    for variant in variants:
        free = {name: value for name, value in variant.items() if name not in contender.settings}
        found += [] if free in found else [free]
    return found
