"""Contenders of a benchmark: from the command line or a file, tuned or selected without labels, and their runs."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from paretoda.bench.baselines import BASELINES
from paretoda.bench.store import Row
from paretoda.bench.suites import Suite
from paretoda.core.options import unknown
from paretoda.errors import RunError, SettingsError
from paretoda.evaluation.model_selection import ENSEMBLE, choose
from paretoda.evaluation.validators import VALIDATORS
from paretoda.io.toml import read_toml
from paretoda.run.presets import choose_suite_form
from paretoda.run.settings import make_settings

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
        return as_json(choose_suite_form({**self.contender.settings, **self.variant}, self.suite))

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


def read_contenders(path: Path, same: Mapping[str, Any]) -> list[Contender]:
    """Contenders from a TOML file: a table for each, its settings as in a config file, or `baseline = NAME`.

    Args:
        path: of the file.
        same: settings of all; a contender's own come first.
    """
    found = []
    for name, settings in read_toml(path).items():
        if not isinstance(settings, dict):
            raise SettingsError(f"{path}: {name!r} is no contender; write [{name!r}] and its settings below it")
        if "baseline" in settings:
            if len(settings) > 1:
                raise SettingsError(f"{path}: {name!r} has a baseline, which takes no other settings; remove them")
            found.append(baseline(settings["baseline"], name))
            continue
        values = {**same, **settings}
        make_settings(without_oracle(values))
        found.append(Contender(name, values))
    return found


def baseline(kind: object, name: str | None = None) -> Contender:
    """A shallow contender."""
    if not isinstance(kind, str) or kind not in BASELINES:
        raise SettingsError(unknown("baseline", str(kind), BASELINES))
    return Contender(name or kind, {"baseline": kind})


GRID = (0.1, 0.3, 1.0)
"""What the alignment counts beside the source's 1, and what the losses on the target count, all of them alike."""


def weight_variants(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the grid as settings; nothing for a contender whose weights are not free.

    Equal weights are the contender as it is, so that a run of the plain sum that is there already is not made again.

    Args:
        settings: of the contender.
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
    """Losses of one group share their weight."""
    return loss if loss in ("source", "alignment") else "target"


def tune_weights(specs: Sequence[RunSpec], judge: str) -> list[RunSpec]:
    """The plan with every run of a plain sum repeated for every combination of weights.

    Args:
        specs: of all runs.
        judge: a validator, or "ensemble" for the mean rank of several; it chooses among a tuned contender's runs.
    """
    if judge not in ("ensemble", *VALIDATORS):
        raise SettingsError(unknown("validator", judge, ["ensemble", *VALIDATORS]))
    found: list[RunSpec] = []
    for spec in specs:
        grid = weight_variants(spec.settings)
        found += [replace(spec, variant={**spec.variant, **weights}, judge=judge) for weights in grid] or [spec]
    if len(found) == len(specs):
        raise SettingsError(
            "--tune-weights tunes the scheme 'linear': no contender has it with several losses and without loss_weights"
        )
    return found


def told(rows: Sequence[Row]) -> list[str]:
    """One sentence for each contender whose weights were tuned: what was chosen, and how often.

    Args:
        rows: that were chosen, one for each contender, task and seed.
    """
    tuned = [row for row in rows if row.get("judge") and "error" not in row]
    sentences = []
    for name in dict.fromkeys(row["name"] for row in tuned):
        mine = [row for row in tuned if row["name"] == name]
        counts = Counter(_weights(row) for row in mine).most_common()
        often = ", ".join(f"{weights} ({count} of {len(mine)})" for weights, count in counts)
        sentences.append(f"{name}: {mine[0]['judge']} chose the weights {often}.")
    return sentences


def _weights(row: Row) -> str:
    losses = make_settings(row["settings"]).losses
    values = row["variant"].get("loss_weights", [1.0] * len(losses))
    return " + ".join(f"{value:g} {loss}" for value, loss in zip(values, losses, strict=True))


def select_variants(rows: Sequence[Row]) -> list[Row]:
    """One row for every suite, task, contender and seed: its best variant by its judge, or the ensemble's mean rank."""
    groups: dict[tuple[str, str, str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["suite"], row["task"], row["name"], row["seed"]), []).append(row)
    return [_best(group) for group in groups.values()]


def _best(group: list[Row]) -> Row:
    finished = [row for row in group if "error" not in row]
    if len(finished) < 2:
        return (finished or group)[0]
    judge = next((row["judge"] for row in reversed(group) if row.get("judge")), "")
    witnesses = ENSEMBLE if judge in ("", "ensemble") else (judge,)
    for row in finished:
        if missing := [name for name in witnesses if (row.get("scores") or {}).get(name) is None]:
            told = f"{row['name']!r} ran {row['task']} in several variants, one without the score {missing[0]!r}"
            raise RunError(f"{told}; remove its line, and the run is made again")
    scores = {name: [row["scores"][name] for row in finished] for name in witnesses}
    return {**finished[choose(scores, judge or "ensemble").index], "judge": judge}
