"""How long SWD's distance and its gradient take, against the plain formula with torch's sort = 1.

    python benchmarks/sliced_wasserstein.py [--points 4096] [--classes 11] [--directions 128] [--rounds 15] [--json]

CPU time with one thread. Every round times both in turn, and the ratio is that of the fastest rounds: those that other
work on the machine disturbed least.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import torch
from torch import Tensor

from paretoda.objectives.alignment.mcd import random_directions, sliced_wasserstein

Distance = Callable[[Tensor, Tensor, Tensor], Tensor]


def plain(one: Tensor, other: Tensor, directions: Tensor) -> Tensor:
    """The distance as it is written in the paper."""
    ranked, other_ranked = ((points @ directions).sort(dim=0).values for points in (one, other))
    return (ranked - other_ranked).square().mean()


WAYS: dict[str, Distance] = {"plain": plain, "ours": sliced_wasserstein}


def seconds(distance: Distance, one: Tensor, other: Tensor, directions: Tensor) -> float:
    start = time.process_time()
    torch.autograd.grad(distance(one, other, directions), [one, other])
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=4096)
    parser.add_argument("--classes", type=int, default=11)
    parser.add_argument("--directions", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    one, other = ((5 * torch.randn(given.points, given.classes)).softmax(1).requires_grad_() for _ in range(2))
    directions = random_directions(given.classes, given.directions, one)
    rounds = [
        {name: seconds(way, one, other, directions) for name, way in WAYS.items()} for _ in range(given.rounds + 1)
    ]
    fastest = {name: min(row[name] for row in rounds[1:]) for name in WAYS}  # the first round warms up
    ratios = {name: value / fastest["plain"] for name, value in fastest.items()}
    if given.json:
        print(json.dumps({"ratios": ratios, "plain_ms": 1000 * fastest["plain"]}))
    else:
        print(f"plain: {1000 * fastest['plain']:.1f} ms; ours: {ratios['ours']:.2f} of that")


if __name__ == "__main__":
    main()
