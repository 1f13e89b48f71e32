"""Selective pseudo-labels with one number of principal components, and their mean over three (docs/decisions/0008).

    python benchmarks/spl_components.py [--data ../shared/data] [--tasks "pacs A-C" ...] [--json]

Prints the oracle accuracy on the development tasks in per cent, in Markdown. There is no seed: nothing is drawn.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from paretoda.bench.baselines import label_z_scores_selectively
from paretoda.bench.suites import find_data_folder, find_suite

CHOICES = [(16,), (32,), (48,), (64,), (96,), (128,), (256,), (128, 64, 32)]


def measure_task(source: Path, target: Path) -> dict[str, float]:
    """Return numbers of components -> accuracy on the target."""
    with np.load(source) as file:
        x, y = file["x"], file["y"]
    with np.load(target) as file:
        points, answers = file["x"], file["y"]
    found = {}
    for components in CHOICES:
        labels = label_z_scores_selectively(x, y, points, int(y.max()) + 1, components).argmax(axis=1)
        found[" + ".join(map(str, components))] = 100 * float((labels == answers).mean())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the suites' files")
    parser.add_argument("--tasks", nargs="+", help="tasks of the suite development; all on features by default")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    folder, tasks = find_data_folder(given.data), find_suite("development").tasks
    names = given.tasks or [name for name in tasks if not name.startswith("digits")]
    found = {name: measure_task(folder / tasks[name].source.path, folder / tasks[name].target.path) for name in names}
    if given.json:
        print(json.dumps(found))
        return
    print(f"| components | {' | '.join(names)} | average |\n|---|{'---:|' * (len(names) + 1)}")
    for row in next(iter(found.values())):
        values = [found[name][row] for name in names]
        print(f"| {row} | {' | '.join(f'{value:.1f}' for value in values)} | {np.mean(values):.1f} |")


if __name__ == "__main__":
    main()
