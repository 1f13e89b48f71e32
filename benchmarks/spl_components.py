"""Selective pseudo-labels with one number of principal components, and their mean over three (docs/decisions/0008).

    python benchmarks/spl_components.py [--data ../shared/data] [--tasks "pacs A-C" ...] [--classes 3] [--json]

Prints the oracle accuracy on the development tasks in per cent, in Markdown. With `--classes K`, tasks are reduced to K
classes, drawn three times with the seeds 0, 1 and 2, and means are printed; without it nothing is drawn.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretoda.bench.baselines import label_z_scores_selectively
from paretoda.bench.suites import find_data_folder, find_suite

CHOICES = [(8,), (16,), (32,), (48,), (64,), (96,), (128,), (256,), (128, 64, 32)]
DRAWS = 3


def measure_task(source: Path, target: Path, classes: int | None = None) -> dict[str, float]:
    """Return numbers of components -> accuracy on the target, a mean over draws where only some classes are kept."""
    with np.load(source) as file:
        x, y = file["x"], file["y"]
    with np.load(target) as file:
        points, answers = file["x"], file["y"]
    if classes is None:
        return measure_labels(x, y, points, answers)
    found = []
    for seed in range(DRAWS):
        kept = np.random.default_rng(seed).choice(int(y.max()) + 1, classes, replace=False)
        own, other = np.isin(y, kept), np.isin(answers, kept)
        kept.sort()
        numbers = np.searchsorted(kept, y[own]), np.searchsorted(kept, answers[other])
        found.append(measure_labels(x[own], numbers[0], points[other], numbers[1]))
    return {name: float(np.mean([each[name] for each in found])) for name in found[0]}


def measure_labels(
    x: NDArray[Any], y: NDArray[np.int64], points: NDArray[Any], answers: NDArray[np.int64]
) -> dict[str, float]:
    """Return numbers of components -> accuracy on the target in per cent."""
    found = {}
    for components in CHOICES:
        labels = label_z_scores_selectively(x, y, points, int(y.max()) + 1, components).argmax(axis=1)
        found[" + ".join(map(str, components))] = 100 * float((labels == answers).mean())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the suites' files")
    parser.add_argument("--tasks", nargs="+", help="tasks of the suite development; all on features by default")
    parser.add_argument("--classes", type=int, help="keep so many classes, drawn at random")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    folder, tasks = find_data_folder(given.data), find_suite("development").tasks
    names = given.tasks or [name for name in tasks if not name.startswith("digits")]
    found = {
        name: measure_task(folder / tasks[name].sources[0].path, folder / tasks[name].target.path, given.classes)
        for name in names
    }
    if given.json:
        print(json.dumps(found))
        return
    print(f"| components | {' | '.join(names)} | average |\n|---|{'---:|' * (len(names) + 1)}")
    for row in next(iter(found.values())):
        values = [found[name][row] for name in names]
        print(f"| {row} | {' | '.join(f'{value:.1f}' for value in values)} | {np.mean(values):.1f} |")


if __name__ == "__main__":
    main()
