"""`paretoda bench`: tasks x contenders x seeds, and the tables that come of it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from paretoda import __version__
from paretoda.bench.by_class import class_rows
from paretoda.bench.contenders import (
    Contender,
    baseline,
    cross,
    plan,
    read_contenders,
    select_variants,
    told,
    tune_weights,
)
from paretoda.bench.jobs import Bench
from paretoda.bench.loading import needs_files
from paretoda.bench.paper import left_out, paper_contenders
from paretoda.bench.runner import run_local
from paretoda.bench.store import Row
from paretoda.bench.suites import Suite, data_folder, find_suite
from paretoda.cli.console import Console
from paretoda.core.options import unknown
from paretoda.errors import SettingsError
from paretoda.io.files import write_text
from paretoda.report.bench_page import render_bench_page
from paretoda.report.tables import Table, TableStyle, make_table, to_csv, to_latex, to_markdown
from paretoda.run.interrupt import InterruptedRunError

_METHODS = ("source-only", "dann")
_SCENE_METHODS = ("source-only", "advent")
_TARGET_LOSSES = ("none", "tcm")
_SCHEMES = ("linear", "paretoda")
_PAPER = Path("paper")


@dataclass(frozen=True)
class BenchOptions:
    """What the command line asks for.

    Args:
        suite: its name.
        tasks: names; empty for all.
        methods: names; empty for the default where no file and no baselines are given.
        target_losses: names.
        schemes: names.
        baselines: names of shallow contenders.
        contenders: a TOML file, or "paper" for the rows of the paper's table.
        lrs: learning rates; where there are several, label-free scores choose among them.
        seeds: how many.
        base: the contender that others are compared with; None: the first.
        settings: of all contenders.
        keep: whether the files of every run stay in runs/.
        judge: of the loss weights of plain sums, a validator; None: they are not tuned.
    """

    suite: str
    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    target_losses: tuple[str, ...]
    schemes: tuple[str, ...]
    baselines: tuple[str, ...]
    contenders: Path | None
    lrs: tuple[float, ...]
    seeds: int
    base: str | None
    settings: Mapping[str, Any]
    keep: bool = False
    judge: str | None = None

    def rows(self) -> list[Contender]:
        """All contenders, in the order of the table."""
        scenes = find_suite(self.suite).kind == "segmentation"
        same = {**({"task": "segmentation"} if scenes else {}), **self.settings}
        found = [baseline(name) for name in self.baselines]
        if self.contenders == _PAPER:
            found += paper_contenders(self.suite, self.settings)
        elif self.contenders is not None:
            found += read_contenders(self.contenders, same)
        methods = self.methods or (() if found else _SCENE_METHODS if scenes else _METHODS)
        losses, schemes = self.target_losses or _TARGET_LOSSES, self.schemes or _SCHEMES
        return [*found, *cross(methods, losses, schemes, **same)]


def run_bench(
    screen: Console, wanted: BenchOptions, out: Path, *, data: Path | None, jobs: int | None, ray: str | None
) -> None:
    """Make the runs that are missing in `out`, then print and write the tables and the page; exit 1 if any failed."""
    if jobs is not None and ray is not None:
        raise SettingsError("--jobs is for this machine's processes and --ray for a cluster; give one of them")
    suite = find_suite(wanted.suite)
    contenders = wanted.rows()
    names = [contender.name for contender in contenders]
    if wanted.base is not None and wanted.base not in names:
        raise SettingsError(unknown("contender", wanted.base, names))
    variants: list[dict[str, Any]] = [{"lr": lr} for lr in wanted.lrs] or [{}]
    specs = plan(wanted.suite, suite, contenders, seeds=wanted.seeds, tasks=wanted.tasks, variants=variants)
    specs = specs if wanted.judge is None else tune_weights(specs, wanted.judge)
    specs = [replace(spec, keep=wanted.keep) for spec in specs]
    tasks = [suite.tasks[name] for name in wanted.tasks or suite.tasks]
    bench = Bench(specs, out, data_folder(data) if any(map(needs_files, tasks)) else None)
    if wanted.contenders == _PAPER and (absent := left_out(wanted.suite)):
        screen.say(f"These rows of the paper's table cannot be run here: {', '.join(absent)}.")
    _announce(screen, bench, wanted.suite)
    try:
        _run(screen, bench, jobs, ray)
    except KeyboardInterrupt as stop:
        done = len(specs) - len(bench.missing())
        raise InterruptedRunError(f"stopped; {done} of {len(specs)} runs are done, the same command goes on") from stop
    screen.progress.stop()
    _show(screen, bench, suite, TableStyle(base=wanted.base or names[0], references=suite.references))


def _announce(screen: Console, bench: Bench, suite: str) -> None:
    """What is done already, and what a reader of the table would want to have known."""
    screen.say(f"{suite}: {len(bench.specs)} runs, {len(bench.specs) - len(bench.missing())} are done already.")
    others = {row["versions"]["paretoda"] for row in bench.rows() if "versions" in row} - {__version__}
    if others:
        screen.say(f"Some were made by paretoda {', '.join(sorted(others))}; with another --out all are made anew.")
    task = find_suite(suite).tasks[bench.specs[0].task]
    asked = [{**task.settings, **spec.settings} for spec in bench.specs if "baseline" not in spec.settings]
    if any(str(each.get("backbone")).startswith("resnet") and not each.get("backbone_weights") for each in asked):
        screen.say("The ResNet starts from random weights; --backbone-weights FILE gives it those of ImageNet.")


def _run(screen: Console, bench: Bench, jobs: int | None, ray: str | None) -> None:
    def tell(done: int, total: int) -> None:
        screen.progress("training", done, total)

    if ray is None:
        run_local(bench, jobs or len(os.sched_getaffinity(0)), tell)
    else:
        from paretoda.bench.ray import run_on_ray  # noqa: PLC0415  (an extra)

        run_on_ray(bench, ray, tell)


def _show(screen: Console, bench: Bench, suite: Suite, look: TableStyle) -> None:
    """Print and write everything; failures come last and decide the exit code."""
    out, made = bench.directory, bench.rows()
    rows = select_variants(made)
    for kind in ("chosen", "last"):
        table = make_table(rows, kind=kind, measure=suite.measure)
        _put(screen, out / kind, table, look)
    if suite.class_references:
        table = make_table(class_rows(rows))
        _put(screen, out / "classes", table, replace(look, references=suite.class_references))
    command = shlex.join(["paretoda", *sys.argv[1:]])
    title = f"ParetoDA bench {out.resolve().name}"
    write_text(
        out / "report.html", render_bench_page(rows, title=title, style=look, command=command, measure=suite.measure)
    )
    for sentence in told(rows):
        screen.result()
        screen.result(sentence)
    screen.result()
    screen.result(f"tables: {out / 'chosen.md'} (.tex, .csv), {out / 'last.md'}; page: {out / 'report.html'}")
    failures = [row for row in made if "error" in row]
    for row in failures:
        screen.say(_failure(row))
    screen.finish(lambda: {"runs": len(made), "failed": len(failures), "report": str(out / "report.html")})
    if failures:
        screen.say(f"{len(failures)} of {len(made)} runs failed; the same command tries them again.")
        raise typer.Exit(1)


def _put(screen: Console, path: Path, table: Table, look: TableStyle) -> None:
    """Print a table and write it in its three forms."""
    screen.result()
    screen.result(to_markdown(table, look))
    for suffix, text in (("md", to_markdown(table, look)), ("tex", to_latex(table, look)), ("csv", to_csv(table))):
        write_text(path.with_suffix(f".{suffix}"), text)


def _failure(row: Row) -> str:
    tried = "".join(f", {name} {value}" for name, value in row["variant"].items())
    return f"{row['task']}, {row['name']}{tried}, seed {row['seed']} failed: {row['error']}"


def numbers(parts: Sequence[str]) -> tuple[float, ...]:
    """The parts of a list as numbers."""
    try:
        return tuple(float(part) for part in parts)
    except ValueError as error:
        raise SettingsError(f"--lrs takes numbers with commas between them: {error}") from error
