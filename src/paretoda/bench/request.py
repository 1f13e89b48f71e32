"""What a user asks of a bench, and the runs that this means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paretoda import __version__
from paretoda.bench.contenders import Contender, cross, make_baseline, plan, read_contenders, tune_weights
from paretoda.bench.jobs import Bench
from paretoda.bench.layouts import find_home
from paretoda.bench.loading import needs_files
from paretoda.bench.paper import list_absent_rows, make_paper_contenders
from paretoda.bench.suites import find_data_folder, find_suite
from paretoda.core.options import unknown
from paretoda.errors import SettingsError
from paretoda.tasks import CLASSIFICATION, find_task
from paretoda.tasks.settings import make_settings
from paretoda.tasks.suites import SuiteTask

_TARGET_LOSSES = ("none", "tcm")
_SCHEMES = ("linear", "paretoda")
_PAPER = Path("paper")
"""In place of a file: the rows of the paper's table."""


@dataclass(frozen=True)
class BenchRequest:
    """The contenders, tasks and seeds of a bench.

    Args:
        suite: Name of the suite.
        tasks: Names of tasks; empty for all.
        methods: Names of methods; empty for the default, or for none if there are a file or baselines.
        target_losses: Names of target losses; empty for the default.
        schemes: Names of schemes; empty for the default.
        baselines: Names of shallow contenders.
        contender_file: A TOML file with a table for each contender, or "paper" for the rows of the paper's table.
        lrs: Learning rates; label-free scores choose among several.
        seeds: Number of seeds.
        base: Name of the contender that others are compared with; None for the first.
        settings: Settings of all contenders.
        keep: Whether the files of every run stay in runs/.
        judge: Validator that chooses the loss weights of plain sums; None if they are not tuned.
    """

    suite: str
    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    target_losses: tuple[str, ...]
    schemes: tuple[str, ...]
    baselines: tuple[str, ...]
    contender_file: Path | None
    lrs: tuple[float, ...]
    seeds: int
    base: str | None
    settings: Mapping[str, Any]
    keep: bool = False
    judge: str | None = None

    def make_contenders(self) -> list[Contender]:
        """Return all contenders, in the order of the table."""
        task = find_suite(self.suite).task
        same = {**({} if task == CLASSIFICATION else {"task": task}), **self.settings}
        found = [make_baseline(name) for name in self.baselines]
        if self.contender_file == _PAPER:
            found += make_paper_contenders(self.suite, same)
        elif self.contender_file is not None:
            found += read_contenders(self.contender_file, same)
        methods = self.methods or (() if found else ("source-only", make_settings({"task": task}).method))
        known = [name for name in _TARGET_LOSSES if name in find_task(task).tables.target_losses] or ["none"]
        losses, schemes = self.target_losses or known, self.schemes or _SCHEMES
        return [*found, *cross(methods, losses, schemes, **same)]


def plan_bench(request: BenchRequest, out: Path, data: Path | None) -> Bench:
    """Plan all runs of a bench.

    Args:
        request: What the user asks for.
        out: Directory of the results.
        data: Folder of the suites' files; None for $PARETODA_DATA or ../shared/data, if files are needed.

    Raises:
        SettingsError: If a name is unknown or settings contradict each other.
        DataError: If the suite needs files and their folder is missing, or has none of the domains.
    """
    suite = find_suite(request.suite)
    contenders = request.make_contenders()
    names = [contender.name for contender in contenders]
    if request.base is not None and request.base not in names:
        raise SettingsError(unknown("contender", request.base, names))
    variants: list[dict[str, Any]] = [{"lr": lr} for lr in request.lrs] or [{}]
    specs = plan(request.suite, suite, contenders, seeds=request.seeds, tasks=request.tasks, variants=variants)
    specs = specs if request.judge is None else tune_weights(specs, request.judge)
    specs = [replace(spec, keep=request.keep) for spec in specs]
    return Bench(specs, out, find_task_data([suite.tasks[name] for name in request.tasks or suite.tasks], data))


def find_task_data(tasks: Sequence[SuiteTask], data: Path | None) -> Path | None:
    """Return the folder with the files of tasks; None if everything is embedded.

    Args:
        tasks: Tasks of suites.
        data: Folder that the user names; None for $PARETODA_DATA or ../shared/data.

    Raises:
        DataError: The folder is missing, or has none of a benchmark's domains: every run would fail alike.
    """
    folder = find_data_folder(data) if any(map(needs_files, tasks)) else None
    for benchmark in {part.benchmark for task in tasks for part in (*task.sources, task.target)} - {None}:
        assert benchmark is not None
        assert folder is not None
        find_home(benchmark, folder)
    return folder


def describe_bench(request: BenchRequest, bench: Bench) -> list[str]:
    """Return sentences for the user before the runs start: what is done, and what a reader of the table should know."""
    said = []
    if request.contender_file == _PAPER and (absent := list_absent_rows(request.suite)):
        said.append(f"These rows of the paper's table cannot be run here: {', '.join(absent)}.")
    total = len(bench.specs)
    said.append(f"{request.suite}: {total} runs, {total - len(bench.missing())} are done already.")
    others = {row["versions"]["paretoda"] for row in bench.rows() if "versions" in row} - {__version__}
    if others:
        said.append(
            f"Some were made by paretoda {', '.join(sorted(others))}; with another --out all runs are made again."
        )
    task = find_suite(request.suite).tasks[bench.specs[0].task]
    trained = [{**task.settings, **spec.settings} for spec in bench.specs if "baseline" not in spec.settings]
    if any("resnet" in str(each.get("backbone")) and not each.get("backbone_weights") for each in trained):
        said.append("The ResNet starts from random weights; --backbone-weights FILE gives it those of ImageNet.")
    return said
