"""How fast and how often right the solvers of the small linear programme are, against ours = 1.

    python benchmarks/linear_program.py [--problems 60] [--seed 0] [--sizes 2 3 4 6 8] [--limit 3] [--json]

Every solver works in one child process with a time limit, since GLPK can cycle for ever inside C on gradients of very
different lengths. Times are the child's CPU time, so that other work on the machine matters little; a ratio is one of
medians. Right is what the rational simplex method says, to 1e-6 of a row's or the objective's largest entry.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from statistics import median
from typing import TypedDict

import numpy as np
from exact_program import optimum
from programmes import FAMILIES, FORMS, Form, Programme, programmes
from solvers import SOLVERS, installed

from paretoda.core.problem import Vector

VERDICTS = ("ok", "no answer", "infeasible", "suboptimal", "never returns")
_TOLERANCE = 1e-6


class Report(TypedDict):
    """Of one form: time by solver and m, verdicts by solver, failures by solver and family."""

    ratios: dict[str, dict[str, float]]
    agreement: dict[str, dict[str, int]]
    failures: dict[str, dict[str, int]]


class Worker:
    """A child process that solves programmes one by one, and is replaced when it does not answer in time."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        self.pipe.recv()

    def solve(self, solver: str, programme: Programme) -> tuple[Vector | None, float] | None:
        """The answer and its CPU seconds, or None where none came in time."""
        self.pipe.send((solver, programme))
        if self.pipe.poll(self.limit):
            answer: tuple[Vector | None, float] = self.pipe.recv()
            return answer
        self.close()
        self._start()
        return None

    def close(self) -> None:
        """End the child, whatever it is doing."""
        self.process.kill()
        self.process.join()


def _serve(pipe: Connection) -> None:
    random = np.random.default_rng(0)
    for form in FORMS:  # import, build and compile before the clock runs
        for solver in installed():
            SOLVERS[solver](Programme(form, random.normal(size=(3, 5)), random.normal(size=5)))
    seen = set()
    pipe.send("ready")
    while True:
        solver, programme = pipe.recv()
        kind = (solver, programme.form, len(programme.gradients))
        if kind not in seen:
            seen.add(kind)
            SOLVERS[solver](programme)
        start = time.process_time()
        weights = SOLVERS[solver](programme)
        pipe.send((weights, time.process_time() - start))


def judge(programme: Programme, weights: Vector | None, best: float | None) -> str:
    """One of VERDICTS, for an answer that came."""
    if weights is None:
        return "ok" if best is None else "no answer"
    kept = np.isfinite(programme.bounds)
    rows, bounds = programme.rows[kept], programme.bounds[kept]
    scales = np.abs(rows).max(axis=1, initial=0.0)
    slack = (rows @ weights - bounds) / np.where(scales > 0, scales, 1.0)
    on_simplex = weights.min() >= -_TOLERANCE and abs(weights.sum() - 1) <= _TOLERANCE
    if not on_simplex or slack.min(initial=0.0) < -_TOLERANCE:
        return "infeasible"
    if best is not None and programme.objective @ weights < best - _TOLERANCE * np.abs(programme.objective).max():
        return "suboptimal"
    return "ok"


def measure(form: Form, arguments: argparse.Namespace, worker: Worker) -> Report:
    """Ratios by m, and verdicts, of every installed solver on one form of the programme."""
    names = installed()
    verdicts = {name: dict.fromkeys(VERDICTS, 0) for name in names}
    failures: dict[str, dict[str, int]] = {name: {} for name in names}
    ratios: dict[str, dict[str, float]] = {name: {} for name in names}
    for size in arguments.sizes:
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for family, programme in programmes(form, size, arguments.problems, arguments.seed):
            best = optimum(programme.objective, programme.rows, programme.bounds)
            for name in names:
                answer = worker.solve(name, programme)
                verdict = "never returns" if answer is None else judge(programme, answer[0], best)
                verdicts[name][verdict] += 1
                if verdict != "ok":
                    failures[name][family] = failures[name].get(family, 0) + 1
                if answer is not None:
                    seconds[name].append(answer[1])
        for name in names:
            ratios[name][str(size)] = median(seconds[name]) / median(seconds["ours"])
    return Report(ratios=ratios, agreement=verdicts, failures=failures)


def show(report: Mapping[Form, Report], arguments: argparse.Namespace) -> None:
    """The report as two tables a form."""
    print(f"{arguments.problems} problems for each m, families: {', '.join(FAMILIES)}; seed {arguments.seed}")
    for form, part in report.items():
        print(f"\n{form}: CPU time of a solve, ours = 1 (median over the problems)")
        print(f"{'':24}" + "".join(f"{'m=' + str(size):>9}" for size in arguments.sizes))
        for name, row in part["ratios"].items():
            print(f"{name:24}" + "".join(f"{row[str(size)]:8.2f}x" for size in arguments.sizes))
        print(
            f"\n{form}: answers".ljust(25) + "".join(f"{verdict:>15}" for verdict in VERDICTS) + "   failures by family"
        )
        for name, counts in part["agreement"].items():
            where = ", ".join(f"{family} {count}" for family, count in part["failures"][name].items())
            print(f"{name:24}" + "".join(f"{counts[verdict]:>15}" for verdict in VERDICTS) + "   " + where)
    for name in sorted(set(SOLVERS) - set(installed())):
        print(f"{name}: its package is not installed, left out")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=60, help="for each m and form (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2, 3, 4, 6, 8], metavar="M")
    parser.add_argument("--limit", type=float, default=3.0, help="seconds before a solver counts as hanging")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    worker = Worker(arguments.limit)
    try:
        report = {form: measure(form, arguments, worker) for form in FORMS}
    finally:
        worker.close()
    if arguments.json:
        print(json.dumps({"problems": arguments.problems, "seed": arguments.seed, "forms": report}))
    else:
        show(report, arguments)


if __name__ == "__main__":
    main()
