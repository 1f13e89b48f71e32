"""Which guide knows the truth? Gradients against the true one, and values against the true accuracy (oracle)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor, nn
from torch.nn import functional

from paretoda.bench.jobs import describe_failures
from paretoda.bench.store import Row
from paretoda.core.factor import cosines
from paretoda.data.pair import Part
from paretoda.evaluation.validators import VALIDATORS
from paretoda.gradients.gram import Row as GradientRow
from paretoda.gradients.gram import gram
from paretoda.gradients.parameters import rate_multipliers, trainable_parameters
from paretoda.gradients.vjp import combine, vjp
from paretoda.io.csv_cells import csv_text
from paretoda.io.files import write_text
from paretoda.objectives import GUIDES, make_guide
from paretoda.studies.contenders import set_steps
from paretoda.studies.instrumented_run import (
    InstrumentedRun,
    Trial,
    copy_at_full_strength,
    open_instrumented_run,
    run_trials,
)
from paretoda.studies.page import COLOURS, Grid, Page, Section, make_panels, save_figure
from paretoda.studies.request import StudyRequest
from paretoda.training.loop import After
from paretoda.types import Objective, Source, Target

_MOST = 512
ORACLES = ("oracle, held-out", "oracle, elsewhere")
"""True cross-entropy on the held-out target, which the guides see too, and on the target's training part."""
SUM = "sum"


def make_guides(lab: InstrumentedRun) -> dict[str, Objective]:
    """All guides of the table, asking the networks of the lab's target loss."""
    classes = len(lab.pair.classes)
    width = int(lab.snapshot().target.features.shape[1])
    target_loss = lab.step.objectives.get("target")
    return {
        name: make_guide(name, features=width, classes=classes, target_loss=target_loss).to(lab.step.device)
        for name in GUIDES
    }


@dataclass(frozen=True)
class Agreement:
    """What was measured at one checkpoint.

    Args:
        values: guide -> its loss on the held-out target.
        cosines: row -> column -> cosine of their gradients; rows: objectives, their sum, guides; columns: oracles and
            objectives.
    """

    values: dict[str, float]
    cosines: dict[str, dict[str, float]]


def measure_agreement(lab: InstrumentedRun, guides: Mapping[str, Objective]) -> Agreement:
    """Losses and gradients for the encoder, in evaluation mode, on fixed samples of each part.

    Args:
        lab: the run, as it is now.
        guides: refreshed already.
    """
    with _evaluating(lab.step.model):
        losses = _losses(lab, guides)
        body = trainable_parameters(lab.step.model.encoder)
        rows: dict[str, GradientRow] = {name: vjp([loss], body, None, keep=True) for name, loss in losses.items()}
    names = list(lab.step.objectives)
    total: GradientRow = [
        combine([rows[name][index] for name in names], [1.0] * len(names)) for index in range(len(body))
    ]
    rows[SUM] = total
    table = cosines(gram(list(rows.values()), rate_multipliers(body, lab.step.optimiser)).cpu().numpy())
    places = {name: place for place, name in enumerate(rows)}
    found = {
        row: {column: float(table[places[row], places[column]]) for column in (*ORACLES, *names)}
        for row in (*names, SUM, *guides)
    }
    return Agreement({name: float(losses[name].detach()) for name in guides}, found)


def _losses(lab: InstrumentedRun, guides: Mapping[str, Objective]) -> dict[str, Tensor]:
    source, target = _labelled(lab), _unlabelled(lab, "target")
    ahead = _unlabelled(lab, "held-out-target")
    device = lab.step.device
    found = {name: copy_at_full_strength(part).to(device)(source, target) for name, part in lab.step.objectives.items()}
    found |= {name: guide(source, ahead) for name, guide in guides.items()}
    for name, domain, part in zip(ORACLES, (ahead, target), ("held-out-target", "target"), strict=True):
        truth = lab.oracle_labels_of(part)[domain.index.cpu()].to(device)  # type: ignore[arg-type]  # two Parts
        found[name] = functional.cross_entropy(domain.logits, truth)
    return found


def _chosen(lab: InstrumentedRun, part: Part) -> Tensor:
    """Places in a part, at most so many: drawn at random, always the same ones."""
    size = len(lab.pair.positions(part))
    return torch.randperm(size, generator=torch.Generator().manual_seed(0))[:_MOST]


def _inputs(lab: InstrumentedRun, part: Part, index: Tensor) -> Tensor:
    rows = lab.pair.source if part == "source" else lab.pair.target
    return rows.evaluate(lab.pair.positions(part)[index.numpy()]).to(lab.step.device)


def _labelled(lab: InstrumentedRun) -> Source:
    index = _chosen(lab, "source")
    inputs = _inputs(lab, "source", index)
    features = lab.step.model.encoder(inputs)
    labels = lab.pair.labels_of("source")[index].to(lab.step.device)
    return Source(features, lab.step.model.head(features), index, inputs, labels=labels)


def _unlabelled(lab: InstrumentedRun, part: Part) -> Target:
    index = _chosen(lab, part)
    inputs = _inputs(lab, part, index)
    features = lab.step.model.encoder(inputs)
    return Target(features, lab.step.model.head(features), index, inputs)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Inside, the model is in evaluation mode, with gradients."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


Line = Mapping[str, Any]
"""A checkpoint: task, name (of the scheme), seed, oracle_accuracy, and `criteria`: name -> number, higher is better."""


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Correlation of the ranks, ties sharing theirs; NaN where one side is constant or has fewer than three numbers."""
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if isfinite(a) and isfinite(b)]
    if len(pairs) < 3:
        return nan
    one, other = (rankdata([pair[side] for pair in pairs]) for side in (0, 1))
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return nan
    return float(np.corrcoef(one, other)[0, 1])


def pooled_correlation(lines: Sequence[Line], criterion: str) -> dict[str, float]:
    """For each task, the correlation over all its checkpoints, seeds and schemes."""
    return _grouped(lines, criterion, lambda line: str(line["task"]))


def within_run_correlation(lines: Sequence[Line], criterion: str) -> float:
    """The mean of the correlations along single runs: does it find the checkpoint to stop at?"""
    return finite_mean(
        list(_grouped(lines, criterion, lambda line: (line["task"], line["name"], line["seed"])).values())
    )


def between_run_correlation(lines: Sequence[Line], criterion: str) -> float:
    """The mean over tasks of the correlations over last checkpoints: does it find the run to keep?"""
    last = {(line["task"], line["name"], line["seed"]): line for line in lines}
    return finite_mean(list(pooled_correlation(list(last.values()), criterion).values()))


def finite_mean(values: Sequence[float]) -> float:
    """Of those that are numbers; NaN where there is none."""
    known = [value for value in values if isfinite(value)]
    return fmean(known) if known else nan


def _grouped(lines: Sequence[Line], criterion: str, by: Callable[[Line], Any]) -> dict[Any, float]:
    groups: dict[Any, list[Line]] = {}
    for line in lines:
        if criterion in line["criteria"]:
            groups.setdefault(by(line), []).append(line)
    return {
        key: spearman([line["criteria"][criterion] for line in group], [line["oracle_accuracy"] for line in group])
        for key, group in groups.items()
    }


OBJECTIVES = ("source", "alignment", "target")
_SUM = "linear"
"""Gradients are compared along the plain sum's runs, which no guide has bent."""

COSINES = (
    "Mean cosine of gradients for the encoder, at every candidate step of the plain sum's runs, evaluation mode. "
    "Oracle: the true cross-entropy on the same held-out target samples, and elsewhere: on the target's training part. "
    "± is the standard deviation over runs. Positive: share of checkpoints whose cosine with the held-out oracle is "
    "above 0. Objectives and their sum stand there for comparison: a guide below the sum adds nothing.",
)
CRITERIA = (
    "Spearman's correlation with the true target accuracy (oracle), guides' losses with their sign turned. All: over "
    "checkpoints, seeds and schemes of a task, then the mean over tasks. Later half: the same without the first "
    "half of each training, in which everything gets better together. Within runs: along each run, then the mean. "
    "Between runs: last checkpoints only. Checkpoints of a run are not independent: differences below 0.1 say little.",
)


@dataclass(frozen=True)
class Pull:
    """How a gradient agrees with the others, over all checkpoints.

    Args:
        cosines: column -> mean.
        spread: standard deviation over runs of the first oracle's.
        positive: share of checkpoints with a positive cosine with the first oracle.
    """

    cosines: Mapping[str, float]
    spread: float
    positive: float


def list_checkpoints(rows: Sequence[Row]) -> list[Row]:
    """One line a checkpoint, with its run's task, name and seed."""
    return [
        {"task": row["task"], "name": row["name"], "seed": row["seed"], **point}
        for row in rows
        if "error" not in row
        for point in row["points"]
    ]


def summarise_cosines(lines: Sequence[Row]) -> dict[str, Pull]:
    """Objectives, their sum and guides, in their order."""
    own = [line for line in lines if line["name"] == _SUM]
    found = {}
    for name in (*OBJECTIVES, SUM, *GUIDES) if own else ():
        columns = {c: finite_mean([line["cosines"][name][c] for line in own]) for c in (*ORACLES, *OBJECTIVES)}
        truth = [line["cosines"][name][ORACLES[0]] for line in own]
        runs: dict[tuple[str, int], list[float]] = {}
        for line, value in zip(own, truth, strict=True):
            runs.setdefault((line["task"], line["seed"]), []).append(value)
        spread = (
            float(np.std([finite_mean(values) for values in runs.values()], ddof=1)) if len(runs) > 1 else float("nan")
        )
        found[name] = Pull(columns, spread, float(np.mean(np.array(truth) > 0)))
    return found


def make_cosine_grid(pull: Mapping[str, Pull]) -> Grid:
    """A row for each gradient."""
    columns = [*ORACLES, *OBJECTIVES]
    rows = []
    for name, fact in pull.items():
        first, *others = (f"{fact.cosines[column]:+.3f}" for column in columns)
        spread = f" ± {fact.spread:.3f}" if isfinite(fact.spread) else ""
        rows.append([_called(name), first + spread, f"{100 * fact.positive:.0f} %", *others])
    return Grid(["gradient of", columns[0], "positive", *columns[1:]], rows)


def _called(name: str) -> str:
    return f"guide {name}" if name in GUIDES else name


FIRST = "later half"
"""The column that orders the table: in the first half everything gets better, whatever is measured."""
Order = dict[str, dict[str, float]]
"""Criterion -> "later half", "all", "within runs", "between runs" and each task -> correlation."""


def rank_criteria(lines: Sequence[Row]) -> Order:
    """All criteria, the best first."""
    found: Order = {}
    half = max((line["step"] for line in lines), default=0) / 2
    later = [line for line in lines if line["step"] > half]
    for name in lines[0]["criteria"] if lines else ():
        tasks = pooled_correlation(lines, name)
        found[name] = {
            "later half": finite_mean(list(pooled_correlation(later, name).values())),
            "all": finite_mean(list(tasks.values())),
            "within runs": within_run_correlation(lines, name),
            "between runs": between_run_correlation(lines, name),
            **tasks,
        }
    return dict(sorted(found.items(), key=lambda item: -item[1][FIRST] if isfinite(item[1][FIRST]) else 2.0))


def make_criteria_grid(order: Order, tasks: Sequence[str]) -> Grid:
    """A row for each criterion."""
    columns = [FIRST, "all", "within runs", "between runs", *(tasks if len(tasks) > 1 else ())]
    rows = [[name, *(_number(facts.get(column)) for column in columns)] for name, facts in order.items()]
    return Grid(["criterion", *columns], rows)


def _number(value: float | None) -> str:
    return f"{value:+.2f}" if value is not None and isfinite(value) else "–"  # noqa: RUF001


def state_answers(pull: Mapping[str, Pull], order: Order) -> list[str]:
    """The result in sentences."""
    known = {name: fact for name, fact in pull.items() if name in GUIDES}
    if not known or not order:
        return ["Nothing could be measured."]
    best = max(known, key=lambda name: known[name].cosines[ORACLES[0]])
    total = pull[SUM].cosines[ORACLES[0]]
    said = [
        f"The gradient nearest to the truth's is that of the guide {best}, cosine "
        f"{known[best].cosines[ORACLES[0]]:+.2f}; the plain sum's has {total:+.2f}."
    ]
    first = next(iter(order))
    values = [name for name in order if name.startswith("guide ")]
    said.append(
        f"In the later half of the training, the value that orders checkpoints best is that of {first} "
        f"(Spearman {_number(order[first][FIRST])}); "
        f"of the guides, {values[0]} ({_number(order[values[0]][FIRST])})."
    )
    return said


def draw_picture(directory: Path, pull: Mapping[str, Pull], order: Order) -> str:
    """Bars of both tables; the name of the file."""
    figure, axes = make_panels(1, 2, width=5.6, height=0.32 * max(len(order), len(pull)) + 1.4)
    names = list(pull)[::-1]
    values = [pull[name].cosines[ORACLES[0]] for name in names]
    spreads = [np.nan_to_num(pull[name].spread) for name in names]
    colours = [COLOURS[0] if _called(name).startswith("guide ") else "#9aa3b2" for name in names]
    axes[0].barh([_called(name) for name in names], values, xerr=spreads, color=colours)
    axes[0].set(xlabel="cosine with the true gradient (oracle)", title="Gradients")
    criteria = [name for name in order if isfinite(order[name][FIRST])][::-1]
    colours = [COLOURS[0] if name.startswith("guide ") else COLOURS[4] for name in criteria]
    axes[1].barh(criteria, [order[name][FIRST] for name in criteria], color=colours)
    axes[1].set(xlabel="Spearman with the true accuracy (oracle)", title="Values")
    for one in axes:
        one.axvline(0, color="black", linewidth=0.8)
    return save_figure(figure, directory / "guides.svg")


TASKS = ("A-C", "C-A", "W-A")
SCHEMES: dict[str, dict[str, Any]] = {
    "linear": {"scheme": "linear"},
    "mgda": {"scheme": "mgda"},
    "paretoda": {"scheme": "paretoda"},
    "paretoda-paper": {"scheme": "paretoda-paper", "guide": "tcm"},
}


def measure(trial: Trial, data: Path | None, work: Path, after: Sequence[After]) -> Row:
    """Train; at every candidate step the guides, the validators, the gradients and the truth."""
    lab = open_instrumented_run(trial, data, work)
    guides = make_guides(lab)
    validators = {name: make() for name, make in VALIDATORS.items()}
    points: list[Row] = []

    def record(taken: int, _report: object) -> None:
        if taken % lab.settings.candidate_every != 0 and taken != lab.settings.steps:
            return
        snapshot = lab.snapshot()
        for guide in guides.values():
            guide.refresh(snapshot)
        found = measure_agreement(lab, guides)
        criteria = {f"guide {name}": -value for name, value in found.values.items()}
        criteria |= {f"validator {name}": validator(snapshot) for name, validator in validators.items()}
        truth = lab.oracle_accuracy()
        points.append({"step": taken, "cosines": found.cosines, "criteria": criteria, "oracle_accuracy": truth})

    lab.train([record, *after])
    return {"points": points}


def study_guides(ask: StudyRequest) -> Page:
    """Train under several schemes and compare what guides and validators say with the truth."""
    tasks = ask.chosen(TASKS)
    same = {"method": "dann", "target_loss": "tcm", "select": "last"}
    trials = [
        Trial(ask.suite, task, name, seed, set_steps(ask, {**same, **settings}))
        for seed in range(ask.seeds)
        for task in tasks
        for name, settings in SCHEMES.items()
    ]
    rows = run_trials(ask, trials, measure)
    lines = list_checkpoints(rows)
    write_text(ask.directory / "checkpoints.csv", _csv(lines))
    pull, order = summarise_cosines(lines), rank_criteria(lines)
    figure = draw_picture(ask.directory, pull, order) if lines else None
    return Page(
        f"Guides on {ask.suite}, {', '.join(tasks)}",
        state_answers(pull, order),
        [
            Section("Where gradients point", COSINES, make_cosine_grid(pull)),
            Section("What values say", CRITERIA, make_criteria_grid(order, tasks)),
            Section("Both", (), None, figure),
        ],
        failures=describe_failures(rows),
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
