"""What a choice without labels costs: regrets of validators, of votes of two and three of them, and of the last step.

    paretoda bench development --tasks "pacs A-C,pacs C-A,surf A-C,surf C-A" OPTIONS --out DIR1
    paretoda bench pacs --tasks P-A,P-C OPTIONS --out DIR2
    paretoda bench office-caltech10 --tasks D-A,A-W OPTIONS --out DIR3
    python benchmarks/regrets.py DIR1 DIR2 DIR3 [--top 10] [--json]

OPTIONS are `--contenders benchmarks/contenders/regrets.toml --seeds 3 --jobs 1`.

The regret of a rule in one run is the oracle accuracy of the best candidate minus that of the candidate that the rule
chooses, in points. Every line of a bench has the scores of all candidates, so nothing is trained here. Votes are mean
ranks, as in `--select a+b`; those with at least one of the validators of `NEW` are compared. The best of hundreds of
votes is the luckiest one too: whoever takes it from this table has chosen with labels, and must confirm it on tasks
that are not in the table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from paretoda.bench.store import Store
from paretoda.evaluation.joint_validators import JOINT_VALIDATORS
from paretoda.evaluation.model_selection import ENSEMBLE, choose
from paretoda.evaluation.validators import VALIDATORS

NEW = ("class-ami", "mano", "circv", "ensv")
LAST = "last"
VOTE = "+".join(ENSEMBLE)


@dataclass(frozen=True)
class CandidateTable:
    """The candidates of one run.

    Args:
        contender: Name of the contender.
        accuracies: Oracle accuracy of each candidate.
        scores: Validator -> score of each candidate.
    """

    contender: str
    accuracies: Sequence[float]
    scores: Mapping[str, Sequence[float]]

    def regret(self, rule: str) -> float:
        """Return the points that the rule's choice is below the best candidate."""
        index = -1
        if rule != LAST:
            index = choose({name: self.scores[name] for name in rule.split("+")}, rule).index
        return 100 * (max(self.accuracies) - self.accuracies[index])


def read_tables(directories: Iterable[Path]) -> list[CandidateTable]:
    """Return the candidates of all finished runs of benches; the last line of a run counts.

    Raises:
        SystemExit: There is no run with candidates.
    """
    rows: dict[tuple[Path, str], dict[str, Any]] = {}
    for directory in directories:
        rows |= {(directory, row["key"]): row for row in Store(directory).read() if row.get("candidates")}
    if not rows:
        raise SystemExit("there is no run with candidates; `paretoda bench` makes some, without --select last")
    names = [*VALIDATORS, *JOINT_VALIDATORS]
    return [
        CandidateTable(
            row["name"],
            [each["oracle_accuracy"] for each in row["candidates"]],
            {name: [each["scores"][name] for each in row["candidates"]] for name in names},
        )
        for row in rows.values()
    ]


def list_rules() -> dict[str, list[str]]:
    """Return kind -> rules: the present vote and the last step, validators, and votes with a new one."""
    names = [*VALIDATORS, *JOINT_VALIDATORS]
    votes = {
        kind: ["+".join(group) for group in combinations(names, size) if set(group) & set(NEW)]
        for kind, size in (("pairs", 2), ("triples", 3))
    }
    return {"today": [VOTE, LAST], "validators": names, **votes}


def measure_rule(tables: Sequence[CandidateTable], rule: str) -> dict[str, float]:
    """Return the mean and the worst regret over all runs, and the mean over those of each contender."""
    regrets = np.array([table.regret(rule) for table in tables])
    contenders = np.array([table.contender for table in tables])
    own = {str(name): float(regrets[contenders == name].mean()) for name in dict.fromkeys(contenders)}
    return {"mean": float(regrets.mean()), "worst": float(regrets.max()), **own}


def print_table(kind: str, found: Mapping[str, Mapping[str, float]], top: int) -> None:
    """Print the rules of a kind in Markdown, the smallest mean regret first."""
    columns = list(next(iter(found.values())))
    best = sorted(found, key=lambda rule: found[rule]["mean"])[:top]
    print(f"\n| {kind} | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for rule in best:
        print(f"| {rule} | {' | '.join(f'{found[rule][column]:.2f}' for column in columns)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR", help="directories of `paretoda bench`")
    parser.add_argument("--top", type=int, default=10, help="number of pairs and of triples that are shown")
    parser.add_argument("--json", action="store_true", help="print all rules as one JSON object")
    given = parser.parse_args()
    tables = read_tables(given.directories)
    found = {kind: {rule: measure_rule(tables, rule) for rule in rules} for kind, rules in list_rules().items()}
    if given.json:
        print(json.dumps({"runs": len(tables), "regrets": found}))
        return
    print(f"Regrets of {len(tables)} runs, in points.")
    for kind, rules in found.items():
        print_table(kind, rules, given.top if kind in ("pairs", "triples") else len(rules))


if __name__ == "__main__":
    main()
