"""One run of ours against the best of nine fixed weights, chosen with and without labels (docs/results.md).

    paretoda bench development --tasks TASKS --methods dann --target-losses mcc+propagation --schemes linear
        --tune-weights dev --seeds 3 --out WEIGHTS
    paretoda bench development --tasks TASKS --contenders benchmarks/contenders/rivals.toml --seeds 3 --out RIVALS
    python benchmarks/budget.py WEIGHTS RIVALS [--row default] [--json]

The first bench trains the plain sum of the default's losses with nine combinations of weights (alignment and target
losses 0.1, 0.3 or 1, source 1), nine runs where the default has one. Each line says how good the choice of one of the
nine by a rule is: by the score of a validator, by the mean rank of the validators that the default votes with, or by
the labels of the target (oracle). Nothing is trained here.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from paretoda.bench.store import Store
from paretoda.evaluation.model_selection import ENSEMBLE, choose
from paretoda.evaluation.validators import VALIDATORS

Group = list[dict[str, Any]]


def read_groups(directory: Path) -> dict[tuple[str, int], Group]:
    """Return (task, seed) -> the finished runs of all weights."""
    rows = {row["key"]: row for row in Store(directory).read() if "error" not in row and row.get("scores")}
    groups: dict[tuple[str, int], Group] = defaultdict(list)
    for row in rows.values():
        groups[row["task"], row["seed"]].append(row)
    if not groups:
        raise SystemExit(f"{directory} has no finished run with scores")
    return dict(groups)


def measure_rules(groups: Mapping[tuple[str, int], Group]) -> dict[str, list[float]]:
    """Return rule -> accuracy in per cent of the run that it chooses, for every task and seed."""
    found: dict[str, list[float]] = defaultdict(list)
    rules: dict[str, Sequence[str]] = {name: (name,) for name in VALIDATORS} | {"+".join(ENSEMBLE): ENSEMBLE}
    for group in groups.values():
        accuracies = [100 * row["accuracy"]["chosen"] for row in group]
        for rule, validators in rules.items():
            scores = {name: [row["scores"][name] for row in group] for name in validators}
            found[rule].append(accuracies[choose(scores, rule).index])
        found["any of them, mean"].append(fmean(accuracies))
        found["labels (oracle)"].append(max(accuracies))
        for row, accuracy in zip(group, accuracies, strict=True):
            found[f"always {row['variant'].get('loss_weights', 'equal')}"].append(accuracy)
    return dict(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, help="bench of the plain sum with --tune-weights")
    parser.add_argument("rivals", type=Path, help="bench with the row that it is compared with")
    parser.add_argument("--row", default="default", help="the row that has one run")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    groups = read_groups(given.weights)
    ours = {place: group for place, group in read_groups(given.rivals).items() if place in groups}
    own = [100 * row["accuracy"]["chosen"] for group in ours.values() for row in group if row["name"] == given.row]
    found = {given.row: own, **measure_rules(groups)}
    if given.json:
        print(json.dumps({rule: fmean(values) for rule, values in found.items()}))
        return
    print(f"{len(groups)} tasks and seeds, {max(map(len, groups.values()))} weights each.\n")
    print("| chosen by | accuracy |\n|---|---:|")
    for rule, values in sorted(found.items(), key=lambda item: -fmean(item[1])):
        print(f"| {rule} | {fmean(values):.1f} |")


if __name__ == "__main__":
    main()
