"""Which guide agrees with the truth? Gradients against the true one, and values against the true accuracy (oracle)."""

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
from paretoda.core.normalisation import cosines
from paretoda.data.pair import Part
from paretoda.evaluation.validators import VALIDATORS
from paretoda.gradients.gram import Row as GradientRow
from paretoda.gradients.gram import gram
from paretoda.gradients.tensors import rate_multipliers, trainable_parameters
from paretoda.gradients.vjp import combine, vjp
from paretoda.io.csv_cells import csv_text
from paretoda.io.files import write_text
from paretoda.objectives import GUIDES, make_guide
from paretoda.studies.instrumented_run import (
    InstrumentedRun,
    Trial,
    copy_at_full_strength,
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
Line = Mapping[str, Any]
"""A checkpoint: task, name (of the scheme), seed, oracle_accuracy, and `criteria`: name -> number, higher is better."""
OBJECTIVES = ("source", "alignment", "target")
_SUM = "linear"
"""Scheme whose runs the gradients are compared along, because no guide has influenced them."""
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
FIRST = "later half"
"""Column that orders the table: in the first half everything improves, whatever is measured."""
Order = dict[str, dict[str, float]]
"""Criterion -> "later half", "all", "within runs", "between runs" and each task -> correlation."""
TASKS = ("A-C", "C-A", "W-A")
SCHEMES: dict[str, dict[str, Any]] = {
    "linear": {"scheme": "linear"},
    "mgda": {"scheme": "mgda"},
    "paretoda": {"scheme": "paretoda"},
    "paretoda-paper": {"scheme": "paretoda-paper", "guide": "tcm"},
}


def make_guides(run: InstrumentedRun) -> dict[str, Objective]:
    """Return all guides of the table, using the networks of the run's target loss."""
    classes = len(run.pair.classes)
    width = int(run.snapshot().target.features.shape[1])
    target_loss = run.step.objectives.get("target")
    return {
        name: make_guide(name, features=width, classes=classes, target_loss=target_loss).to(run.step.device)
        for name in GUIDES
    }


@dataclass(frozen=True)
class Agreement:
    """Measurements at one checkpoint.

    Args:
        values: Guide -> its loss on the held-out target.
        cosines: Row -> column -> cosine of their gradients; rows: objectives, their sum, guides; columns: oracles and
            objectives.
    """

    values: dict[str, float]
    cosines: dict[str, dict[str, float]]


def measure_agreement(run: InstrumentedRun, guides: Mapping[str, Objective]) -> Agreement:
    """Return losses and gradients of the encoder, in evaluation mode, on fixed samples of each part.

    Args:
        run: The run, as it is now.
        guides: Guides, refreshed already.
    """
    with _evaluation_mode(run.step.model):
        losses = _losses(run, guides)
        body = trainable_parameters(run.step.model.encoder)
        rows: dict[str, GradientRow] = {name: vjp([loss], body, None, keep=True) for name, loss in losses.items()}
    names = list(run.step.objectives)
    total: GradientRow = [
        combine([rows[name][index] for name in names], [1.0] * len(names)) for index in range(len(body))
    ]
    rows[SUM] = total
    table = cosines(gram(list(rows.values()), rate_multipliers(body, run.step.optimiser)).cpu().numpy())
    places = {name: place for place, name in enumerate(rows)}
    found = {
        row: {column: float(table[places[row], places[column]]) for column in (*ORACLES, *names)}
        for row in (*names, SUM, *guides)
    }
    return Agreement({name: float(losses[name].detach()) for name in guides}, found)


def _losses(run: InstrumentedRun, guides: Mapping[str, Objective]) -> dict[str, Tensor]:
    source, target = _encode_source(run), _encode_target(run, "target")
    ahead = _encode_target(run, "held-out-target")
    device = run.step.device
    found = {name: copy_at_full_strength(part).to(device)(source, target) for name, part in run.step.objectives.items()}
    found |= {name: guide(source, ahead) for name, guide in guides.items()}
    for name, domain, part in zip(ORACLES, (ahead, target), ("held-out-target", "target"), strict=True):
        truth = run.oracle_labels_of(part)[domain.index.cpu()].to(device)  # type: ignore[arg-type]  # two Parts
        found[name] = functional.cross_entropy(domain.logits, truth)
    return found


def _fixed_positions(run: InstrumentedRun, part: Part) -> Tensor:
    """Return positions in a part, at most `_MOST`: drawn at random, always the same ones."""
    size = len(run.pair.positions(part))
    return torch.randperm(size, generator=torch.Generator().manual_seed(0))[:_MOST]


def _inputs(run: InstrumentedRun, part: Part, index: Tensor) -> Tensor:
    rows = run.pair.source if part == "source" else run.pair.target
    return rows.evaluate(run.pair.positions(part)[index.numpy()]).to(run.step.device)


def _encode_source(run: InstrumentedRun) -> Source:
    index = _fixed_positions(run, "source")
    inputs = _inputs(run, "source", index)
    features = run.step.model.encoder(inputs)
    labels = run.pair.labels_of("source")[index].to(run.step.device)
    return Source(features, run.step.model.head(features), index, inputs, labels=labels)


def _encode_target(run: InstrumentedRun, part: Part) -> Target:
    index = _fixed_positions(run, part)
    inputs = _inputs(run, part, index)
    features = run.step.model.encoder(inputs)
    return Target(features, run.step.model.head(features), index, inputs)


@contextmanager
def _evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Inside, the model is in evaluation mode, with gradients."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Correlation of the ranks, with shared ranks for ties.

    NaN where one side is constant or has fewer than three numbers.

    >>> spearman([1.0, 2.0, 3.0], [10.0, 20.0, 15.0])
    0.5
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if isfinite(a) and isfinite(b)]
    if len(pairs) < 3:
        return nan
    one, other = (rankdata([pair[side] for pair in pairs]) for side in (0, 1))
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return nan
    return float(np.corrcoef(one, other)[0, 1])


def pooled_correlation(lines: Sequence[Line], criterion: str) -> dict[str, float]:
    """Correlation over all checkpoints, seeds and schemes, for each task."""
    return _correlate_groups(lines, criterion, lambda line: str(line["task"]))


def within_run_correlation(lines: Sequence[Line], criterion: str) -> float:
    """Mean of the correlations along single runs: does it find the checkpoint to stop at?"""
    return finite_mean(
        list(_correlate_groups(lines, criterion, lambda line: (line["task"], line["name"], line["seed"])).values())
    )


def between_run_correlation(lines: Sequence[Line], criterion: str) -> float:
    """Mean over tasks of the correlations over last checkpoints: does it find the run to keep?"""
    last = {(line["task"], line["name"], line["seed"]): line for line in lines}
    return finite_mean(list(pooled_correlation(list(last.values()), criterion).values()))


def finite_mean(values: Sequence[float]) -> float:
    """Mean of the finite values; NaN where there is none."""
    known = [value for value in values if isfinite(value)]
    return fmean(known) if known else nan


def _correlate_groups(lines: Sequence[Line], criterion: str, by: Callable[[Line], Any]) -> dict[Any, float]:
    groups: dict[Any, list[Line]] = {}
    for line in lines:
        if criterion in line["criteria"]:
            groups.setdefault(by(line), []).append(line)
    return {
        key: spearman([line["criteria"][criterion] for line in group], [line["oracle_accuracy"] for line in group])
        for key, group in groups.items()
    }


@dataclass(frozen=True)
class Pull:
    """How a gradient agrees with the others, over all checkpoints.

    Args:
        cosines: Column -> mean.
        spread: Standard deviation over runs of the cosine with the first oracle.
        positive: Share of checkpoints with a positive cosine with the first oracle.
    """

    cosines: Mapping[str, float]
    spread: float
    positive: float


def list_checkpoints(rows: Sequence[Row]) -> list[Row]:
    """Return one line per checkpoint, with its run's task, name and seed."""
    return [
        {"task": row["task"], "name": row["name"], "seed": row["seed"], **point}
        for row in rows
        if "error" not in row
        for point in row["points"]
    ]


def summarise_cosines(lines: Sequence[Row]) -> dict[str, Pull]:
    """Return the agreement of objectives, their sum and guides, in their order."""
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
    """Return a table with a row for each gradient."""
    columns = [*ORACLES, *OBJECTIVES]
    rows = []
    for name, fact in pull.items():
        first, *others = (f"{fact.cosines[column]:+.3f}" for column in columns)
        spread = f" ± {fact.spread:.3f}" if isfinite(fact.spread) else ""
        rows.append([_row_name(name), first + spread, f"{100 * fact.positive:.0f} %", *others])
    return Grid(["gradient of", columns[0], "positive", *columns[1:]], rows)


def _row_name(name: str) -> str:
    return f"guide {name}" if name in GUIDES else name


def rank_criteria(lines: Sequence[Row]) -> Order:
    """Return all criteria, the best first."""
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
    """Return a table with a row for each criterion."""
    columns = [FIRST, "all", "within runs", "between runs", *(tasks if len(tasks) > 1 else ())]
    rows = [[name, *(_number(facts.get(column)) for column in columns)] for name, facts in order.items()]
    return Grid(["criterion", *columns], rows)


def _number(value: float | None) -> str:
    return f"{value:+.2f}" if value is not None and isfinite(value) else "–"  # noqa: RUF001


def state_answers(pull: Mapping[str, Pull], order: Order) -> list[str]:
    """Return the result in sentences."""
    known = {name: fact for name, fact in pull.items() if name in GUIDES}
    if not known or not order:
        return ["Nothing could be measured."]
    best = max(known, key=lambda name: known[name].cosines[ORACLES[0]])
    total = pull[SUM].cosines[ORACLES[0]]
    sentences = [
        f"The gradient nearest to the truth's is that of the guide {best}, cosine "
        f"{known[best].cosines[ORACLES[0]]:+.2f}; the plain sum's has {total:+.2f}."
    ]
    first = next(iter(order))
    values = [name for name in order if name.startswith("guide ")]
    sentences.append(
        f"In the later half of the training, the value that orders checkpoints best is that of {first} "
        f"(Spearman {_number(order[first][FIRST])}); "
        f"of the guides, {values[0]} ({_number(order[values[0]][FIRST])})."
    )
    return sentences


def draw_picture(directory: Path, pull: Mapping[str, Pull], order: Order) -> str:
    """Draw bars of both tables and return the name of the file."""
    figure, axes = make_panels(1, 2, width=5.6, height=0.32 * max(len(order), len(pull)) + 1.4)
    names = list(pull)[::-1]
    values = [pull[name].cosines[ORACLES[0]] for name in names]
    spreads = [np.nan_to_num(pull[name].spread) for name in names]
    colours = [COLOURS[0] if _row_name(name).startswith("guide ") else "#9aa3b2" for name in names]
    axes[0].barh([_row_name(name) for name in names], values, xerr=spreads, color=colours)
    axes[0].set(xlabel="cosine with the true gradient (oracle)", title="Gradients")
    criteria = [name for name in order if isfinite(order[name][FIRST])][::-1]
    colours = [COLOURS[0] if name.startswith("guide ") else COLOURS[4] for name in criteria]
    axes[1].barh(criteria, [order[name][FIRST] for name in criteria], color=colours)
    axes[1].set(xlabel="Spearman with the true accuracy (oracle)", title="Values")
    for one in axes:
        one.axvline(0, color="black", linewidth=0.8)
    return save_figure(figure, directory / "guides.svg")


def measure(run: InstrumentedRun, after: Sequence[After]) -> Row:
    """Train, and at every candidate step measure the guides, the validators, the gradients and the truth."""
    guides = make_guides(run)
    validators = {name: make() for name, make in VALIDATORS.items()}
    points: list[Row] = []

    def record(taken: int, _report: object) -> None:
        if taken % run.settings.candidate_every != 0 and taken != run.settings.steps:
            return
        snapshot = run.snapshot()
        for guide in guides.values():
            guide.refresh(snapshot)
        found = measure_agreement(run, guides)
        criteria = {f"guide {name}": -value for name, value in found.values.items()}
        criteria |= {f"validator {name}": validator(snapshot) for name, validator in validators.items()}
        truth = run.oracle_accuracy()
        points.append({"step": taken, "cosines": found.cosines, "criteria": criteria, "oracle_accuracy": truth})

    run.train([record, *after])
    return {"points": points}


def study_guides(request: StudyRequest) -> Page:
    """Train under several schemes and compare what guides and validators say with the truth.

    Args:
        request: What the user asks for.

    Returns:
        The page of the study.
    """
    tasks = request.choose_tasks(TASKS)
    same = {"method": "dann", "target_loss": "tcm", "select": "last"}
    trials = [
        Trial(request.suite, task, name, seed, {**same, **settings})
        for seed in range(request.seeds)
        for task in tasks
        for name, settings in SCHEMES.items()
    ]
    rows = run_trials(request, trials, measure)
    lines = list_checkpoints(rows)
    write_text(request.directory / "checkpoints.csv", _csv(lines))
    pull, order = summarise_cosines(lines), rank_criteria(lines)
    figure = draw_picture(request.directory, pull, order) if lines else None
    return Page(
        f"Guides on {request.suite}, {', '.join(tasks)}",
        state_answers(pull, order),
        [
            Section("Where gradients point", COSINES, make_cosine_grid(pull)),
            Section("What values say", CRITERIA, make_criteria_grid(order, tasks)),
            Section("Both", (), None, figure),
        ],
        failures=describe_failures(rows),
    )


def _csv(lines: Sequence[Row]) -> str:
    """Return one line per checkpoint with everything that was measured."""
    flat = []
    for line in lines:
        own = {key: line[key] for key in ("task", "name", "seed", "step", "oracle_accuracy")}
        own |= line["criteria"]
        own |= {f"cos({row}; {column})": v for row, found in line["cosines"].items() for column, v in found.items()}
        flat.append(own)
    heads = list(flat[0]) if flat else []
    return csv_text([heads, *([own[head] for head in heads] for own in flat)] if flat else [])
