"""Contenders of a benchmark, the runs that they mean, and the selection among variants without target labels."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from paretoda.bench.baselines import BASELINES
from paretoda.bench.store import Row
from paretoda.core.options import unknown
from paretoda.errors import RunError, SettingsError
from paretoda.evaluation.model_selection import ENSEMBLE, choose
from paretoda.evaluation.validators import VALIDATORS
from paretoda.io.toml import read_toml
from paretoda.run.presets import choose_suite_form
from paretoda.run.settings import Settings
from paretoda.tasks.settings import make_settings
from paretoda.tasks.suites import Suite

ORACLE = "oracle"
"""Key among the settings of a contender: it is trained on the target with its labels, as an upper bound."""
ONLY_SOURCE = "only_source"
"""Key among the settings of a contender: number, from 1, of the only one of several sources that it is trained on."""
_NO_SETTINGS = (ORACLE, ONLY_SOURCE)
GRID = (0.1, 0.3, 1.0)
"""Weights of the alignment, and of all losses on the target together; the source loss has the weight 1."""


@dataclass(frozen=True)
class Contender:
    """A row of the table.

    Args:
        name: Name of the row.
        settings: Settings that differ from the defaults; "baseline" alone names a shallow contender, "oracle" reads
            target labels.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunSpec:
    """One run of a benchmark: everything that decides its result.

    Its settings are checked once, when they are first needed.

    Args:
        suite: Name of the suite.
        task: Name of the task in the suite.
        contender: The contender that runs.
        seed: Seed of the run.
        variant: Settings of one of several variants, among which a validator chooses one for the table.
        keep: Whether the files of the run, its model among them, stay in runs/KEY of the bench.
        judge: Name of the validator that chooses among variants; empty for the mean rank of several.
    """

    suite: str
    task: str
    contender: Contender
    seed: int
    variant: Mapping[str, Any] = field(default_factory=dict)
    keep: bool = False
    judge: str = ""

    @cached_property
    def _given(self) -> dict[str, Any]:
        return choose_suite_form({**self.contender.settings, **self.variant}, self.suite)

    @cached_property
    def _checked(self) -> Settings | None:
        """The checked settings; None for a baseline, which has none."""
        return None if "baseline" in self._given else make_settings(drop_keys(self._given))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings of the run as JSON reads them back; those of the task are not among them.

        They are the settings that were given, and always the losses and the scheme.
        """
        made = self._checked
        if made is None:
            return self._given
        return describe_settings(made) | {key: self._given[key] for key in _NO_SETTINGS if self._given.get(key)}

    @cached_property
    def key(self) -> str:
        """A hash of everything that decides the result, so not of the contender's name."""
        facts = [self.suite, self.task, self.settings, self.seed]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def steps(self) -> int:
        """The number of training steps, for the progress; a baseline counts as one."""
        return 1 if self._checked is None else self._checked.steps

    @property
    def line(self) -> dict[str, Any]:
        """What every result says about its run."""
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


def describe_settings(made: Settings) -> dict[str, Any]:
    """Return the settings that were given, and always the losses and the scheme, as JSON reads them back.

    The same settings are described alike, however they are written: 1 or 1.0, a tuple or a list, "dann+im" or its two
    parts.

    Args:
        made: Checked settings.

    Examples:
        >>> describe_settings(make_settings({"method": "dann+im", "lr": 1}))
        {'method': 'dann', 'target_loss': 'im', 'lr': 1.0, 'scheme': 'paretoda'}
    """
    given = made.model_dump(mode="json", exclude_unset=True)
    return {**given, "method": made.method, "target_loss": made.target_loss, "scheme": made.scheme}


def run_folder(bench: Path, spec: RunSpec) -> Path:
    """Return where the files of a run are kept in the directory of a bench."""
    return bench / "runs" / spec.key


def drop_keys(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without the keys that say what data a contender gets, which are no settings of a run."""
    return {name: value for name, value in settings.items() if name not in _NO_SETTINGS}


def cross(methods: Iterable[str], target_losses: Sequence[str], schemes: Sequence[str], **same: Any) -> list[Contender]:
    """Combine every method with every target loss under every scheme; "source-only" has one loss and no scheme.

    Args:
        methods: Alignments; "a+b" also names the target loss.
        target_losses: Target losses of the methods that name none.
        schemes: Schemes of every combination with several losses.
        **same: Settings of all contenders.
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
    """Return all runs, seed by seed, so that early results cover every task and contender.

    Args:
        name: Name of the suite.
        suite: The suite.
        contenders: The rows of the table, whose names differ.
        seeds: Number of seeds.
        tasks: Names of tasks; all by default.
        variants: Variants of every contender that trains; settings that the contender fixes are left out of them.

    Raises:
        SettingsError: If a task is unknown, or two contenders have the same name.
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
        for variant in _list_own_variants(contender, variants)
    ]


def _list_own_variants(contender: Contender, variants: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the variants without the settings that the contender fixes, each once."""
    if "baseline" in contender.settings:
        return [{}]
    found: list[dict[str, Any]] = []
    for variant in variants:
        free = {name: value for name, value in variant.items() if name not in contender.settings}
        found += [] if free in found else [free]
    return found


def read_contenders(path: Path, same: Mapping[str, Any]) -> list[Contender]:
    """Read contenders from a TOML file: a table for each, with settings as in a config file, or `baseline = NAME`.

    Args:
        path: Path of the file.
        same: Settings of all contenders; those of the file take precedence.
    """
    found = []
    for name, settings in read_toml(path).items():
        if not isinstance(settings, dict):
            raise SettingsError(f"{path}: {name!r} is not a contender; write [{name!r}] and its settings below it")
        if "baseline" in settings:
            if len(settings) > 1:
                raise SettingsError(f"{path}: {name!r} has a baseline, which takes no other settings; remove them")
            found.append(make_baseline(settings["baseline"], name))
            continue
        values = {**same, **settings}
        make_settings(drop_keys(values))
        found.append(Contender(name, values))
    return found


def make_baseline(kind: object, name: str | None = None) -> Contender:
    """Return a shallow contender; its name is that of the baseline by default."""
    if not isinstance(kind, str) or kind not in BASELINES:
        raise SettingsError(unknown("baseline", str(kind), BASELINES))
    return Contender(name or kind, {"baseline": kind})


def list_weight_variants(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every combination of the grid as settings; none for a contender whose weights are not free.

    Equal weights are the contender as it is, so that an existing run of the plain sum is not made again.

    Args:
        settings: Settings of the contender.
    """
    if "baseline" in settings:
        return []
    made = make_settings(settings)
    if made.scheme != "linear" or made.loss_weights or len(made.losses) < 2:
        return []
    groups = list(dict.fromkeys(_group(name) for name in made.losses))
    found: list[dict[str, Any]] = []
    for values in product(*[(1.0,) if group == "source" else GRID for group in groups]):
        weights = dict(zip(groups, values, strict=True))
        chosen = tuple(weights[_group(name)] for name in made.losses)
        found.append({} if set(chosen) == {1.0} else {"loss_weights": chosen})
    return found


def _group(loss: str) -> str:
    """Return the group of a loss; the losses of a group share their weight."""
    return loss if loss in ("source", "alignment") else "target"


def tune_weights(specs: Sequence[RunSpec], judge: str) -> list[RunSpec]:
    """Return the plan with every run of a plain sum repeated for every combination of weights.

    Args:
        specs: All runs.
        judge: Validator that chooses among the runs of a tuned contender, or "ensemble" for the mean rank of several.

    Raises:
        SettingsError: If there is no such validator, or nothing to tune.
    """
    if judge not in ("ensemble", *VALIDATORS):
        raise SettingsError(unknown("validator", judge, ["ensemble", *VALIDATORS]))
    found: list[RunSpec] = []
    for spec in specs:
        grid = list_weight_variants(spec.settings)
        found += [replace(spec, variant={**spec.variant, **weights}, judge=judge) for weights in grid] or [spec]
    if len(found) == len(specs):
        raise SettingsError(
            "--tune-weights tunes the scheme 'linear': no contender has it with several losses and without loss_weights"
        )
    return found


def describe_tuned_weights(rows: Sequence[Row]) -> list[str]:
    """Return one sentence for each contender whose weights were tuned: the chosen weights, and how often.

    Args:
        rows: The selected rows, one for each contender, task and seed.
    """
    tuned = [row for row in rows if row.get("judge") and "error" not in row]
    sentences = []
    for name in dict.fromkeys(row["name"] for row in tuned):
        mine = [row for row in tuned if row["name"] == name]
        counts = Counter(_describe_weights(row) for row in mine).most_common()
        often = ", ".join(f"{weights} ({count} of {len(mine)})" for weights, count in counts)
        sentences.append(f"{name}: {mine[0]['judge']} chose the weights {often}.")
    return sentences


def _describe_weights(row: Row) -> str:
    losses = make_settings(row["settings"]).losses
    values = row["variant"].get("loss_weights", [1.0] * len(losses))
    return " + ".join(f"{value:g} {loss}" for value, loss in zip(values, losses, strict=True))


def select_variants(rows: Sequence[Row]) -> list[Row]:
    """Return one row for every suite, task, contender and seed: its best variant by its judge, or by the mean rank."""
    groups: dict[tuple[str, str, str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["suite"], row["task"], row["name"], row["seed"]), []).append(row)
    return [_select_best(group) for group in groups.values()]


def _select_best(group: list[Row]) -> Row:
    finished = [row for row in group if "error" not in row]
    if len(finished) < 2:
        return (finished or group)[0]
    judge = next((row["judge"] for row in reversed(group) if row.get("judge")), "")
    validators = ENSEMBLE if judge in ("", "ensemble") else (judge,)
    for row in finished:
        if missing := [name for name in validators if (row.get("scores") or {}).get(name) is None]:
            what = f"{row['name']!r} ran {row['task']} in several variants, one without the score {missing[0]!r}"
            raise RunError(f"{what}; remove its line, and the run is repeated")
    scores = {name: [row["scores"][name] for row in finished] for name in validators}
    return {**finished[choose(scores, judge or "ensemble").index], "judge": judge}
