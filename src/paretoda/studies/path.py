"""Optimisation paths in the space of the losses, from one point, beside the ideal one that knows target labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from paretoda.bench.jobs import failures
from paretoda.bench.store import Row
from paretoda.evaluation.oracle import OracleGuide, OracleLabels
from paretoda.studies.ask import Ask
from paretoda.studies.benched import with_steps
from paretoda.studies.lab import Lab, losses_now, open_lab
from paretoda.studies.page import Page, Section
from paretoda.studies.path_facts import facts_of, table
from paretoda.studies.path_figure import picture
from paretoda.studies.trials import Trial, run_trials
from paretoda.training.loop import After

_RECORDS = 25
IDEAL = "as printed, oracle guide"
CONTROL = "sum and the oracle's labels"
PATHS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sum": ({"scheme": "linear"}, {}),
    "EPO": ({"scheme": "epo"}, {}),
    "ParetoDA as printed": ({"scheme": "paretoda-paper", "guide": "tcm"}, {}),
    "paretoda": ({"scheme": "paretoda"}, {}),
    "paretoda, oracle guide": ({"scheme": "paretoda"}, {"oracle": True}),
    IDEAL: ({"scheme": "paretoda-paper"}, {"oracle": True}),
    CONTROL: ({"scheme": "linear"}, {"control": True}),
}
"""Name -> settings, and what no setting can say: the paper's ideal path, and a sum that trains on the same labels."""


def measure(trial: Trial, data: Path | None, work: Path, after: Sequence[After]) -> Row:
    """Train; the losses on whole sets before the first step and every few steps."""
    lab = open_lab(trial, data, work)
    if trial.extra.get("oracle"):
        lab.step.guide = OracleGuide(lab.oracle_labels_of("held-out-target")).to(lab.step.device)
    if trial.extra.get("control"):
        lab = _trained_on_labels(lab)
    points = [_point(lab, 0)]
    every = max(1, lab.settings.steps // _RECORDS)

    def record(taken: int, _report: object) -> None:
        if taken % every == 0 or taken == lab.settings.steps:
            points.append(_point(lab, taken))

    lab.train([record, *after])
    return {"points": points}


def _trained_on_labels(lab: Lab) -> Lab:
    """The held-out target samples join the training part, and their true labels a further objective."""
    pair = lab.pair
    unknown = torch.full((len(pair.target_train),), -1)
    labels = torch.cat([unknown, lab.oracle_labels_of("held-out-target")])
    lab.step.objectives["oracle"] = OracleLabels(labels).to(lab.step.device)
    return replace(lab, pair=replace(pair, target_train=np.concatenate([pair.target_train, pair.target_held_out])))


def _point(lab: Lab, taken: int) -> dict[str, float]:
    snapshot = lab.snapshot()
    truth = lab.oracle_labels_of("held-out-target")
    held = snapshot.held_out_target.logits
    with torch.no_grad():
        oracle_loss = float(functional.cross_entropy(held, truth))
    return {
        "step": taken,
        **losses_now(lab.step, snapshot),
        "oracle_held_out_loss": oracle_loss,
        "oracle_accuracy": lab.oracle_accuracy(),
    }


def path(ask: Ask) -> Page:
    """Follow every path from the same weights, for each seed."""
    task = ask.one()
    same = {"method": "dann", "target_loss": "tcm", "select": "last"}
    trials = [
        Trial(ask.suite, task, name, seed, with_steps(ask, {**same, **settings}), extra)
        for seed in range(ask.seeds)
        for name, (settings, extra) in PATHS.items()
    ]
    rows = run_trials(ask, trials, measure)
    good = [row for row in rows if "error" not in row]
    facts = facts_of(good, IDEAL)
    figures = [
        Section(f"Paths, seed {seed}", _CAPTION, None, picture(ask.directory, good, seed))
        for seed in sorted({row["seed"] for row in good})
    ]
    return Page(
        f"Optimisation paths on {ask.suite}, {task}",
        _answers(facts),
        [Section("Ends of the paths", _NOTES, table(facts)), *figures],
        failures=failures(rows),
    )


_CAPTION = (
    "All paths start at the star, with the same weights; the last point is the large one. Dashed: oracle, guided by "
    "target labels. Losses are those of the training parts in evaluation mode, each with its own run's discriminator.",
)
_NOTES = (
    "Mean ± std over seeds. Every loss is divided by its range over all paths. Distance: between the end and the ideal "
    "end. Cosine: of the whole displacement with the ideal path's. Rising: share of the stretches between two records "
    "in which some loss rises by more than 5 % of its range along the path. "
    "Rows with an oracle guide saw the labels of the held-out target; the control trains on the same labels.",
)


def _answers(facts: dict[str, dict[str, list[float]]]) -> list[str]:
    own = {name: fact["distance"] for name, fact in facts.items() if "oracle" not in name and fact["distance"]}
    if not own:
        return ["No path could be compared with the ideal one."]
    mean = {name: sum(values) / len(values) for name, values in own.items()}
    order = sorted(mean, key=mean.__getitem__)
    told = ", ".join(f"{name} ({mean[name]:.2f})" for name in order)
    return [
        f"The end nearest to the ideal one is that of {order[0]}; by distance: {told}.",
        "The paper says that ParetoDA ends nearest to the ideal and that the linear sum ends farthest.",
    ]
