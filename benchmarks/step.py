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

import memory
import numpy as np
import torch
from networks import Network, Setting
from step_table import Result, Row, show
from steps import VARIANTS

from paretoda.core.problem import Guide, Problem
from paretoda.gradients.gram import gram
from paretoda.schemes.paretoda_paper import ParetoPaper

_HEAP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 36), "MALLOC_ARENA_MAX": "1"}
"""Keep freed memory, as GPU allocators do. By default glibc hands blocks above 32 MiB back to the system. The joint
batch of the plain step is the first to reach that size and loses a quarter of its time to it, in the others' favour."""

_CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}

DEFAULTS: dict[Network, dict[str, int]] = {
    "cnn": {"size": 64, "batch": 32, "repeats": 15},
    "resnet50": {"size": 224, "batch": 8, "repeats": 3},
}


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
        threads=torch.get_num_threads(),
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
        print(json.dumps({"networks": results}))


if __name__ == "__main__":
    main()
