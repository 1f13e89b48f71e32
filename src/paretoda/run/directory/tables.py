"""The tables and JSON files of a run: step metrics, results and predictions, validated when they are read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import copysign, inf, isfinite, nan
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from paretoda.gradients import Report
from paretoda.io.csv_cells import csv_text, unescape_cell
from paretoda.io.files import parse_json

Predicted: TypeAlias = tuple[str, str, float]
"""Name of a sample, its predicted class, the confidence; its predicted value and NaN in regression."""

_HEADS = ["name", "prediction", "confidence"]
_VALUE_HEADS = ["name", "value"]
_FAR = 1e100  # no measured number is as large, and charts of it would overflow
Count = Annotated[int, Field(ge=0, le=10**15)]


def _clip_huge(value: float | None) -> float | None:
    return copysign(inf, value) if value is not None and abs(value) >= _FAR else value


Number = Annotated[float | None, AfterValidator(_clip_huge)]


class StepLine(BaseModel):
    """A line of metrics.jsonl; further keys are allowed."""

    model_config = ConfigDict(extra="allow")

    step: Count
    losses: dict[str, Number]
    weights: dict[str, Number]
    move: str
    cosines: list[list[Number]] | None = None
    guide_loss: Number = None
    guide_cosines: list[Number] | None = None

    @model_validator(mode="after")
    def _square(self) -> StepLine:
        count = len(self.losses)
        wrong = self.cosines is not None and [len(row) for row in self.cosines] != [count] * count
        if wrong or (self.guide_cosines is not None and len(self.guide_cosines) != count):
            raise ValueError(f"the cosines are not those of {count} losses")
        return self


class Results(BaseModel):
    """The content of results.json; further keys are allowed."""

    model_config = ConfigDict(extra="allow")

    chosen_step: Count = 0
    scores: dict[str, Number] = {}
    candidates: list[dict[str, Number]] = []
    sentences: list[str] = []
    class_weights: dict[str, Number] = {}
    novelty_threshold: Number = None
    unknown_share: Number = None

    @model_validator(mode="after")
    def _same_scores(self) -> Results:
        for row in self.candidates:
            if not isfinite(row.get("step") or 0) or set(row) != {"step", *self.candidates[0]}:
                raise ValueError("the candidates have no step, or not the same scores")
        return self


def parse_metrics(text: str) -> list[dict[str, Any]]:
    """Parse metrics.jsonl; a ValueError names the damaged line."""
    return [_step_line(number, line) for number, line in enumerate(text.split("\n")[:-1], start=1)]


def _step_line(number: int, line: str) -> dict[str, Any]:
    try:
        return StepLine.model_validate(parse_json(line)).model_dump()
    except ValueError as error:
        raise ValueError(f"line {number}: {first_reason(error)}") from error


def check_results(values: dict[str, Any]) -> dict[str, Any]:
    """Check the content of results.json; a ValueError says what is wrong."""
    try:
        return Results.model_validate(values).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise ValueError(first_reason(error)) from error


def predictions_table(rows: Iterable[Predicted]) -> str:
    """Return the text of predictions.csv."""
    return csv_text([_HEADS, *((name, prediction, f"{confidence:.6f}") for name, prediction, confidence in rows)])


def values_table(rows: Iterable[tuple[str, float]]) -> str:
    r"""Return the text of a regression's predictions.csv.

    >>> values_table([("0", 1.25)])
    'name,value\n0,1.25\n'
    """
    return csv_text([_VALUE_HEADS, *((name, f"{value:.9g}") for name, value in rows)])


def blank_uncertain(rows: Iterable[Predicted], confidences: Iterable[float], threshold: float) -> list[Predicted]:
    """Return rows with an empty class where the confidence, before rounding, is below the threshold."""
    both = zip(rows, confidences, strict=True)
    return [(name, found if float(own) >= threshold else "", shown) for (name, found, shown), own in both]


def parse_predictions(text: str) -> list[Predicted]:
    """Parse predictions.csv; a ValueError names the damaged line."""
    rows = csv.reader(io.StringIO(text, newline=""))
    try:
        heads = next(rows, None)
        if heads == _VALUE_HEADS:
            return [_value(row) for row in rows]
        if heads != _HEADS:
            raise ValueError("the first line is not name,prediction,confidence")
        return [_prediction(row) for row in rows]
    except (ValueError, csv.Error) as error:
        raise ValueError(f"line {rows.line_num}: {error}") from error


def _prediction(row: Sequence[str]) -> Predicted:
    if len(row) != 3:
        raise ValueError(f"{len(row)} cells instead of 3")
    return unescape_cell(row[0]), unescape_cell(row[1]), float(row[2])


def _value(row: Sequence[str]) -> Predicted:
    if len(row) != 2:
        raise ValueError(f"{len(row)} cells instead of 2")
    return unescape_cell(row[0]), str(float(row[1])), nan


def read_text(path: Path) -> str:
    """Read a UTF-8 file; other bytes are a ValueError."""
    return path.read_bytes().decode("utf-8")


def first_reason(error: ValueError) -> str:
    """Return the first reason of a validation error, on one line."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part)[:40] for part in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def metrics_line(taken: int, report: Report) -> dict[str, Any]:
    """Return the metrics of a step as JSON values."""
    return {
        "step": taken,
        "losses": {name: _number(loss) for name, loss in zip(report.names, report.losses.tolist(), strict=True)},
        "weights": report.weights,
        "move": report.move.value,
        "cosines": None if report.cosines is None else report.cosines.tolist(),
        "guide_loss": None if report.guide_loss is None else _number(report.guide_loss),
        "guide_cosines": None if report.guide_cosines is None else report.guide_cosines.tolist(),
        "finite": report.finite,
    }


def scalars(line: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a step by name: loss/source, weight/source, cosine/source/target, guide/loss, ...

    Args:
        line: A line of metrics.jsonl. Numbers that were not computed or are not finite are left out.
    """
    names = list(line["losses"])
    found: dict[str, float | None] = {f"loss/{name}": loss for name, loss in line["losses"].items()}
    found |= {f"weight/{name}": weight for name, weight in line["weights"].items()}
    if line["cosines"] is not None:
        pairs = combinations(range(len(names)), 2)
        found |= {f"cosine/{names[i]}/{names[j]}": line["cosines"][i][j] for i, j in pairs}
    found["guide/loss"] = line["guide_loss"]
    for name, cosine in zip(names, line["guide_cosines"] or (), strict=False):
        found[f"guide/cosine/{name}"] = cosine
    return {name: value for name, value in found.items() if value is not None and isfinite(value)}


def metrics_table(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of metrics.csv: a row for each step; a cell is empty where a number was not computed."""
    rows = [
        ({"step": line["step"], "move": line["move"], "finite": line.get("finite", True)}, scalars(line))
        for line in lines
    ]
    heads = list(dict.fromkeys(name for _, numbers in rows for name in numbers))
    table = [[*facts.values(), *(numbers.get(name, "") for name in heads)] for facts, numbers in rows]
    return csv_text([["step", "move", "finite", *heads], *table])


def _number(value: float) -> float | None:
    """Return None for NaN and infinity, which JSON cannot express."""
    return value if isfinite(value) else None
