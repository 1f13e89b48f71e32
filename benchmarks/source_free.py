"""Adaptation without a source beside the run that has it, on the development tasks (docs/source-free.md).

    python benchmarks/source_free.py --data DATA [--tasks "pacs A-C,surf A-C"] [--seeds 3] [--json]

A model is trained on the source alone, which has never seen the target; every row begins with it and reads the target
only. The last row is the default, which has both domains. Target labels are used to measure.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any

from paretoda.api import adapt
from paretoda.bench.execute import load_suite_task
from paretoda.run.result import Run

SUITE = "development"
TASKS = "pacs A-C,pacs C-A,pacs P-A,pacs P-C,surf A-C,surf A-W,surf C-A,surf D-A"
ROWS: dict[str, dict[str, Any]] = {
    "SHOT, sum": {"scheme": "linear"},
    "SHOT": {},
    "AaD": {"target_loss": "aad"},
    "MCC + propagation, sum": {"target_loss": "mcc+propagation", "scheme": "linear"},
    "MCC + propagation": {"target_loss": "mcc+propagation"},
}
"""Name -> settings of a run that begins with the given model."""
GIVEN, WITH_SOURCE = "the given model", "the default, with the source"


def measure_task(task: str, seed: int, data: Path, rows: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return the accuracy of every row in per cent."""
    with TemporaryDirectory() as work:
        loaded = load_suite_task(SUITE, task, data, Path(work))

        def accuracy(run: Run) -> float:
            probabilities = run.model.probabilities(loaded.test.samples)
            return 100 * float((probabilities.argmax(axis=1) == loaded.test.oracle_labels).mean())

        given = adapt(loaded.source, out=Path(work, "given"), method="source-only", seed=seed)
        found = {GIVEN: accuracy(given)}
        for name, settings in rows.items():
            run = adapt(target=loaded.target, from_run=given, seed=seed, reference=False, **settings)
            found[name] = accuracy(run)
        found[WITH_SOURCE] = accuracy(adapt(loaded.source, loaded.target, seed=seed, reference=False))
        return found


def print_table(tasks: list[str], found: dict[str, dict[str, list[float]]]) -> None:
    """Print mean and spread of every row."""
    print(f"|  | {' | '.join(tasks)} | average |\n| --- |{' ---: |' * (len(tasks) + 1)}")
    for name, values in found.items():
        cells = [*(values[task] for task in tasks), [fmean(seed) for seed in zip(*values.values(), strict=True)]]
        spread = [f" ± {stdev(cell):.1f}" if len(cell) > 1 else "" for cell in cells]
        print(f"| {name} | {' | '.join(f'{fmean(c):.1f}{s}' for c, s in zip(cells, spread, strict=True))} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the suites' files")
    parser.add_argument("--tasks", default=TASKS, help="tasks of the suite, separated by commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", help="JSON: name -> settings; the methods of docs/source-free.md if not given")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    tasks, rows = given.tasks.split(","), json.loads(given.rows) if given.rows else ROWS
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for seed in range(given.seeds):
        for task in tasks:
            for name, accuracy in measure_task(task, seed, given.data, rows).items():
                found[name][task].append(accuracy)
            print(f"seed {seed}, {task}: done", file=sys.stderr, flush=True)
    if given.json:
        print(json.dumps(found))
    else:
        print_table(tasks, found)


if __name__ == "__main__":
    main()
