"""What a training step costs in time and memory, for every way of taking it, with a plain DANN step = 1.

    python benchmarks/step.py [--network cnn|resnet50|both] [--size PX] [--batch N] [--repeats N] [--threads 2]
                              [--clock wall|cpu] [--variants NAME ...] [--no-memory] [--json]

The variants take turns, each round in another order, and a ratio is the median over the rounds of variant / plain in
the same round; its spread is the smallest and the largest. Run it on an idle machine, or with --clock cpu --threads 1:
two threads that wait for each other on a busy machine tell nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TypedDict

import memory
import numpy as np
import torch
from networks import Network, Setting
from steps import VARIANTS

from paretoda.core.problem import Guide, Problem
from paretoda.gradients.gram import gram
from paretoda.schemes.paretoda_paper import ParetoPaper

_HEAP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 36), "MALLOC_ARENA_MAX": "1"}
"""Keep freed memory, as GPU allocators do. By default glibc returns blocks above 32 MiB to the system, and the plain step,
whose joint batch is the first to reach that size, pays for it with a third of its time: every rival would look better."""

_CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}

DEFAULTS: dict[Network, dict[str, int]] = {
    "cnn": {"size": 64, "batch": 32, "repeats": 15},
    "resnet50": {"size": 224, "batch": 8, "repeats": 3},
}


class Row(TypedDict):
    """One variant: ratios to plain, its theoretical ratio, and its memory above plain in units of d floats."""

    name: str
    ratio: float
    low: float
    high: float
    theory: float
    memory: float | None


class Result(TypedDict):
    """One network: its size, the rows, and the share of an exact step that Gram matrix and programme take."""

    dimension: int
    size: int
    batch: int
    repeats: int
    clock: str
    rows: list[Row]
    gram_and_programme: float


@dataclass(frozen=True)
class Plan:
    """What is run on one network.

    Args:
        network: which.
        size: pixels.
        batch: images a domain.
        repeats: rounds.
        clock: of `_CLOCKS`.
        names: of the variants.
    """

    network: Network
    size: int
    batch: int
    repeats: int
    clock: str
    names: list[str]

    def timed(self, work: Callable[[], object]) -> float:
        """Seconds that the work takes."""
        start = _CLOCKS[self.clock]()
        work()
        return _CLOCKS[self.clock]() - start


def rounds(plan: Plan, setting: Setting) -> dict[str, list[float]]:
    """Seconds of one step of every variant in every round."""
    steps = {name: VARIANTS[name].make(setting) for name in plan.names}
    seconds: dict[str, list[float]] = {name: [] for name in plan.names}

    def whole(name: str) -> None:
        for _ in range(VARIANTS[name].rounds):
            setting.optimiser.zero_grad()
            steps[name]()
            setting.optimiser.step()

    for number in range(-1, plan.repeats):  # round -1 warms up
        print(f"{plan.network}: round {number + 1} of {plan.repeats}", file=sys.stderr, flush=True)
        first = number % len(plan.names)
        for name in plan.names[first:] + plan.names[:first]:
            elapsed = plan.timed(partial(whole, name)) / VARIANTS[name].rounds
            if number >= 0:
                seconds[name].append(elapsed)
    return seconds


def measure(plan: Plan, *, with_memory: bool) -> Result:
    """The row of every variant on one network."""
    peaks = {name: memory.peak(name, plan.network) for name in plan.names} if with_memory else {}
    setting = Setting(plan.network, plan.size, plan.batch)
    seconds = rounds(plan, setting)
    rows = []
    for name in plan.names:
        ratios = [mine / plain for mine, plain in zip(seconds[name], seconds["plain"], strict=True)]
        row = Row(name=name, ratio=median(ratios), low=min(ratios), high=max(ratios), theory=0.0, memory=None)
        row["theory"] = VARIANTS[name].cost / VARIANTS["plain"].cost
        if peaks:
            row["memory"] = (peaks[name] - peaks["plain"]) / 4 / setting.dimension
        rows.append(row)
    exact = next((name for name in ("exact, per-domain", "exact, joint") if name in plan.names), "plain")
    return Result(
        dimension=setting.dimension,
        size=plan.size,
        batch=plan.batch,
        repeats=plan.repeats,
        clock=plan.clock,
        rows=rows,
        gram_and_programme=gram_and_programme(plan, setting) / median(seconds[exact]),
    )


def gram_and_programme(plan: Plan, setting: Setting) -> float:
    """Seconds for the inner products of four gradients of the network's size, and for the scheme."""
    rows = [[torch.randn_like(parameter) for parameter in setting.shared] for _ in range(4)]
    rates = [1.0] * len(setting.shared)

    def work() -> None:
        products = gram(rows, rates).numpy()  # type: ignore[arg-type]
        guide = Guide(products[:3, 3], square=float(products[3, 3]), loss=1.0)
        ParetoPaper()(Problem(products[:3, :3], np.ones(3), guide))

    work()
    return median(plan.timed(work) for _ in range(7))


def show(network: Network, result: Result) -> None:
    """The result as a table, with the goals of the design."""
    print(
        f"\n{network}: {result['dimension']:,} shared parameters (d), {result['batch']} images of {result['size']} px "
        f"a domain, {result['repeats']} rounds, {torch.get_num_threads()} threads, "
        f"{result['clock']} time"
    )
    where = f"memory above plain ({memory.SIZE} px, batch {memory.BATCH})"
    print(f"{'':20}{'ratio':>7}{'spread':>15}{'theory':>8}   {where}")
    for row in result["rows"]:
        above = row["memory"]
        text = "" if above is None else f"{above:6.2f} d floats, {above * 4 * result['dimension'] / 2**20:6.0f} MiB"
        spread = f"{row['low']:.2f}-{row['high']:.2f}"
        print(f"{row['name']:20}{row['ratio']:6.2f}x{spread:>15}{row['theory']:7.2f}x   {text}")
    print(f"Gram matrix and programme: {100 * result['gram_and_programme']:.2f} % of an exact step")
    for line in goals(result):
        print(line)


def goals(result: Result) -> list[str]:
    """Each goal of the design and whether this run meets it."""
    rows = {row["name"]: row for row in result["rows"]}
    found: list[tuple[str, float, float]] = [
        ("Gram matrix and programme <= 0.02 of an exact step", result["gram_and_programme"], 0.02)
    ]
    exact, last, authors = rows.get("exact, per-domain"), rows.get("last"), rows.get("authors")
    if exact:
        found.append(("exact, per-domain <= 2.4x plain", exact["ratio"], 2.4))
        if authors:
            found.append(("exact, per-domain <= 0.5x the authors' step", exact["ratio"] / authors["ratio"], 0.5))
        if exact["memory"] is not None:
            found.append(("exact, per-domain <= 4 d floats above plain", exact["memory"], 4.0))
    if last:
        found.append(("last <= 1.25x plain", last["ratio"], 1.25))
    return [f"{'met   ' if value <= limit else 'MISSED'} {name}: {value:.3f}" for name, value, limit in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", choices=["cnn", "resnet50", "both"], default="both")
    parser.add_argument("--size", type=int, help="pixels (default: 64 for the CNN, 224 for the ResNet)")
    parser.add_argument("--batch", type=int, help="images a domain (default: 32, 8)")
    parser.add_argument("--repeats", type=int, help="rounds (default: 15, 3)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=list(_CLOCKS), default="wall")
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), metavar="NAME")
    parser.add_argument("--no-memory", action="store_true", help="leave out the memory, one process a variant")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if os.environ.get("MALLOC_MMAP_MAX_") != "0":  # read by the C library at its start
        os.execve(sys.executable, sys.orig_argv, os.environ | _HEAP)
    torch.set_num_threads(arguments.threads)
    names = [name for name in VARIANTS if VARIANTS[name].installed and (name in arguments.variants or name == "plain")]
    networks: list[Network] = ["cnn", "resnet50"] if arguments.network == "both" else [arguments.network]
    results = {}
    for network in networks:
        options = {option: getattr(arguments, option) or value for option, value in DEFAULTS[network].items()}
        plan = Plan(network, clock=arguments.clock, names=names, **options)
        results[network] = measure(plan, with_memory=not arguments.no_memory)
        if not arguments.json:
            show(network, results[network])
    if arguments.json:
        print(json.dumps({"threads": arguments.threads, "networks": results}))


if __name__ == "__main__":
    main()
