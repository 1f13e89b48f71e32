"""The mean prediction of runs on several frozen networks, beside each of them: Office-31, default (docs/results.md).

    python benchmarks/network_means.py --data DATA [--seeds 3] [--seed N] [--json]

The same mean is what `paretoda predict RUN INPUT --with RUN2 --with RUN3` gives. Target labels are used to measure.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory

import numpy as np

from paretoda.api import adapt
from paretoda.bench.execute import load_suite_task
from paretoda.bench.suites import find_suite

SUITE = "office31-jpeg"
NETWORKS = {"efficientnet-lite0": 224, "efficientnet-lite1": 240, "efficientnet-lite2": 260}
"""Name -> side of the images that it was trained with."""
MEAN = "mean of the three"


def measure_task(task: str, seed: int, data: Path, work: Path) -> dict[str, float]:
    """Return the accuracy in per cent of every network and of their mean."""
    loaded = load_suite_task(SUITE, task, data, work)
    predicted = {}
    for network, side in NETWORKS.items():
        run = adapt(
            loaded.source,
            loaded.target,
            seed=seed,
            backbone=network,
            backbone_weights="default",
            frozen=True,
            image_size=side,
            reference=False,
        )
        predicted[network] = run.model.probabilities(loaded.test.samples)
    predicted[MEAN] = np.mean(list(predicted.values()), axis=0)
    truth = loaded.test.oracle_labels
    return {name: 100 * float((rows.argmax(axis=1) == truth).mean()) for name, rows in predicted.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the suites' files")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, help="this seed only")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    tasks = list(find_suite(SUITE).tasks)
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with TemporaryDirectory() as work:
        for seed in range(given.seeds) if given.seed is None else [given.seed]:
            for task in tasks:
                for name, accuracy in measure_task(task, seed, given.data, Path(work)).items():
                    found[name][task].append(accuracy)
    if given.json:
        print(json.dumps(found))
        return
    print(f"|  | {' | '.join(tasks)} | average |\n| --- |{' ---: |' * (len(tasks) + 1)}")
    for name, values in found.items():
        averages = [fmean(seed) for seed in zip(*values.values(), strict=True)]
        cells = [*values.values(), averages]
        spread = [f" ± {stdev(cell):.1f}" if len(cell) > 1 else "" for cell in cells]
        print(f"| {name} | {' | '.join(f'{fmean(c):.1f}{s}' for c, s in zip(cells, spread, strict=True))} |")


if __name__ == "__main__":
    main()
