"""What a training step costs in time and memory, for every way of taking it, with a plain DANN step = 1.

    python benchmarks/step.py [--network cnn|resnet50|both] [--size PX] [--batch N] [--repeats N] [--threads 2]
                              [--variants NAME ...] [--no-memory] [--json]

The variants take turns, each round in another order, and a ratio is the median over the rounds of variant / plain in
the same round; its spread is the smallest and the largest. Run it on an idle machine: times are wall-clock.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
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
    rows: list[Row]
    gram_and_programme: float


def _timed(work: Callable[[], object], times: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) / times


def measure(network: Network, size: int, batch: int, repeats: int, names: list[str], *, with_memory: bool) -> Result:
    """The row of every variant on one network."""
    peaks = {name: memory.peak(name, network) for name in names} if with_memory else {}
    setting = Setting(network, size, batch)
    steps = {name: VARIANTS[name].make(setting) for name in names}

    def whole(name: str) -> None:
        setting.optimiser.zero_grad()
        steps[name]()
        setting.optimiser.step()

    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-1, repeats):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            # Round -1 warms up; a cycle of several steps ends where it began.
            elapsed = _timed(lambda name=name: whole(name), VARIANTS[name].rounds)  # type: ignore[misc]
            if number >= 0:
                seconds[name].append(elapsed)
    rows = []
    for name in names:
        ratios = [mine / plain for mine, plain in zip(seconds[name], seconds["plain"], strict=True)]
        above = (peaks[name] - peaks["plain"]) / 4 / setting.dimension if peaks else None
        theory = VARIANTS[name].cost / VARIANTS["plain"].cost
        rows.append(
            Row(name=name, ratio=median(ratios), low=min(ratios), high=max(ratios), theory=theory, memory=above)
        )
    exact = next((name for name in ("exact, per-domain", "exact, joint") if name in names), "plain")
    share = gram_and_programme(setting) / median(seconds[exact])
    return Result(
        dimension=setting.dimension, size=size, batch=batch, repeats=repeats, rows=rows, gram_and_programme=share
    )


def gram_and_programme(setting: Setting, repeats: int = 7) -> float:
    """Seconds for the inner products of four gradients of the network's size, and for the scheme."""
    rows = [[torch.randn_like(parameter) for parameter in setting.shared] for _ in range(4)]
    rates = [1.0] * len(setting.shared)

    def work() -> None:
        products = gram(rows, rates).numpy()  # type: ignore[arg-type]
        guide = Guide(products[:3, 3], square=float(products[3, 3]), loss=1.0)
        ParetoPaper()(Problem(products[:3, :3], np.ones(3), guide))

    work()
    return median(_timed(work) for _ in range(repeats))


def show(network: Network, result: Result) -> None:
    """The result as a table, with the goals of the design."""
    print(
        f"\n{network}: {result['dimension']:,} shared parameters (d), {result['batch']} images of {result['size']} px "
        f"a domain, {result['repeats']} rounds, {torch.get_num_threads()} threads"
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
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), metavar="NAME")
    parser.add_argument("--no-memory", action="store_true", help="leave out the memory, one process a variant")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    names = [name for name in VARIANTS if VARIANTS[name].installed and (name in arguments.variants or name == "plain")]
    networks: list[Network] = ["cnn", "resnet50"] if arguments.network == "both" else [arguments.network]
    results = {}
    for network in networks:
        size, batch, repeats = (
            getattr(arguments, option) or DEFAULTS[network][option] for option in ("size", "batch", "repeats")
        )
        results[network] = measure(network, size, batch, repeats, names, with_memory=not arguments.no_memory)
        if not arguments.json:
            show(network, results[network])
    if arguments.json:
        print(json.dumps({"threads": arguments.threads, "networks": results}))


if __name__ == "__main__":
    main()
