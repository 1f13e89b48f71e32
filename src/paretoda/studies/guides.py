"""Which guide knows the truth? Gradients against the true one, and values against the true accuracy (oracle)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paretoda.bench.jobs import failures
from paretoda.bench.store import Row
from paretoda.core.cells import csv_text
from paretoda.evaluation.validators import VALIDATORS
from paretoda.studies.agreement import agreement, make_guides
from paretoda.studies.ask import Ask
from paretoda.studies.benched import with_steps
from paretoda.studies.guide_tables import (
    COSINES,
    CRITERIA,
    answers,
    checkpoints,
    cosine_facts,
    cosine_grid,
    criteria_facts,
    criteria_grid,
    picture,
)
from paretoda.studies.lab import open_lab
from paretoda.studies.page import Page, Section
from paretoda.studies.trials import Trial, run_trials
from paretoda.training.files import write_text
from paretoda.training.loop import After

TASKS = ("A-C", "C-A", "W-A")
SCHEMES: dict[str, dict[str, Any]] = {
    "linear": {"scheme": "linear"},
    "mgda": {"scheme": "mgda"},
    "paretoda": {"scheme": "paretoda"},
    "paretoda-paper": {"scheme": "paretoda-paper", "guide": "tcm"},
}


def measure(trial: Trial, data: Path | None, work: Path, after: Sequence[After]) -> Row:
    """Train; at every candidate step the guides, the validators, the gradients and the truth."""
    lab = open_lab(trial, data, work)
    guides = make_guides(lab)
    validators = {name: make() for name, make in VALIDATORS.items()}
    points: list[Row] = []

    def record(taken: int, _report: object) -> None:
        if taken % lab.settings.candidate_every != 0 and taken != lab.settings.steps:
            return
        snapshot = lab.snapshot()
        for guide in guides.values():
            guide.refresh(snapshot)
        found = agreement(lab, guides)
        criteria = {f"guide {name}": -value for name, value in found.values.items()}
        criteria |= {f"validator {name}": validator(snapshot) for name, validator in validators.items()}
        truth = lab.oracle_accuracy()
        points.append({"step": taken, "cosines": found.cosines, "criteria": criteria, "oracle_accuracy": truth})

    lab.train([record, *after])
    return {"points": points}


def guides(ask: Ask) -> Page:
    """Train under several schemes and compare what guides and validators say with the truth."""
    tasks = ask.chosen(TASKS)
    same = {"method": "dann", "target_loss": "tcm", "select": "last"}
    trials = [
        Trial(ask.suite, task, name, seed, with_steps(ask, {**same, **settings}))
        for seed in range(ask.seeds)
        for task in tasks
        for name, settings in SCHEMES.items()
    ]
    rows = run_trials(ask, trials, measure)
    lines = checkpoints(rows)
    write_text(ask.directory / "checkpoints.csv", _csv(lines))
    pull, order = cosine_facts(lines), criteria_facts(lines)
    figure = picture(ask.directory, pull, order) if lines else None
    return Page(
        f"Guides on {ask.suite}, {', '.join(tasks)}",
        answers(pull, order),
        [
            Section("Where gradients point", COSINES, cosine_grid(pull)),
            Section("What values say", CRITERIA, criteria_grid(order, tasks)),
            Section("Both", (), None, figure),
        ],
        failures=failures(rows),
    )


def _csv(lines: Sequence[Row]) -> str:
    """One line a checkpoint, everything that was measured."""
    flat = []
    for line in lines:
        own = {key: line[key] for key in ("task", "name", "seed", "step", "oracle_accuracy")}
        own |= line["criteria"]
        own |= {f"cos({row}; {column})": v for row, found in line["cosines"].items() for column, v in found.items()}
        flat.append(own)
    heads = list(flat[0]) if flat else []
    return csv_text([heads, *([own[head] for head in heads] for own in flat)] if flat else [])
