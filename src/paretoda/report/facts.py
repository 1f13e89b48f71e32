"""The contents of a run's page as plain values, and the curves in its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isfinite
from typing import Any

from markupsafe import Markup

from paretoda.report.charts import Points
from paretoda.report.confusion import Confusion
from paretoda.report.label_maps import MapCard, Overlap
from paretoda.report.scatter import FeatureMap


@dataclass(frozen=True)
class Card:
    """A sample with its image.

    Args:
        image: Data URI of the image.
        name: Name of the sample.
        prediction: Predicted class.
        confidence: Confidence of the prediction.
        oracle_label: Label, where target labels were given.
    """

    image: str
    name: str
    prediction: str
    confidence: float
    oracle_label: str | None = None


@dataclass(frozen=True)
class Figure:
    """A picture that only some tasks have.

    Args:
        heading: What it shows.
        about: How to read it.
        picture: The picture.
    """

    heading: str
    about: str
    picture: Markup


@dataclass(frozen=True)
class Pictures:
    """What only the model and the data can show.

    Args:
        plane: Features of both domains.
        cards: Samples of the target with their images.
        confusions: Labels against predictions, of the held-out source and, where labels were given, of the target.
        map_cards: Images of the target with their label maps, for tasks that predict maps.
        overlaps: Overlap of classes, of the held-out source and, where labels were given, of the target, likewise.
        figures: Further pictures of the task.
    """

    plane: FeatureMap | None = None
    cards: Sequence[Card] = ()
    confusions: Sequence[Confusion] = ()
    map_cards: Sequence[MapCard] = ()
    overlaps: Sequence[Overlap] = ()
    figures: Sequence[Figure] = ()


NO_PICTURES = Pictures()


@dataclass(frozen=True)
class RunFacts:
    """A finished run without its networks.

    Args:
        title: Title of the page.
        settings: Name -> value.
        environment: Name -> version.
        history: One line per step: step, losses, weights, move, cosines, guide_loss, guide_cosines.
        candidates: One row each: step and scores.
        chosen: Number of steps after which the chosen model was taken; None: no model was chosen yet.
        scores: Scores of the chosen model, without labels.
        sentences: Sentences for the user.
        predictions: (name, class, confidence) of the target's samples; (name, value, NaN) in regression.
        inputs: Domain -> location of its data.
        pictures: What the model and the data show.
        classes_title: Heading of the table of predicted classes.
        class_weights: Class -> its weight, where the target may lack classes; otherwise empty.
        novelty: Threshold of the novelty and share of unknown samples, where the target may have classes of its own.
    """

    title: str
    settings: Mapping[str, Any]
    environment: Mapping[str, str]
    history: Sequence[Mapping[str, Any]]
    candidates: Sequence[Mapping[str, Any]] = ()
    chosen: int | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    sentences: Sequence[str] = ()
    predictions: Sequence[tuple[str, str, float]] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    pictures: Pictures = NO_PICTURES
    classes_title: str = "Predicted classes"
    class_weights: Mapping[str, float | None] = field(default_factory=dict)
    novelty: tuple[float, float] | None = None


def named_curves(history: Sequence[Mapping[str, Any]], key: str) -> dict[str, Points]:
    """Return the curves of a field that maps names to numbers, such as losses or weights."""
    names = history[0][key] if history else {}
    return {name: [(line["step"], _number(line[key].get(name))) for line in history] for name in names}


def guide_curve(history: Sequence[Mapping[str, Any]]) -> dict[str, Points]:
    """Return the guide's loss at the steps that had one."""
    points = [(line["step"], _number(line["guide_loss"])) for line in history if line.get("guide_loss") is not None]
    return {"guide": points} if points else {}


def cosine_curves(history: Sequence[Mapping[str, Any]]) -> dict[str, Points]:
    """Return the cosine of every pair of gradients, and of each with the guide's."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for line in history:
        names = list(line["losses"])
        for first, second in combinations(range(len(names)), 2):
            if line.get("cosines") is not None:
                point = (line["step"], _number(line["cosines"][first][second]))
                curves.setdefault(f"{names[first]} · {names[second]}", []).append(point)
        if line.get("guide_cosines") is not None:
            for name, value in zip(names, line["guide_cosines"], strict=True):
                curves.setdefault(f"{name} · guide", []).append((line["step"], _number(value)))
    return dict(curves)


def count_conflicts(curves: Mapping[str, Points]) -> list[tuple[str, float, float]]:
    """Return name, mean cosine and share of conflicting steps of each pair of gradients."""
    found = []
    for name, points in curves.items():
        values = [value for _, value in points if isfinite(value)]
        if values:
            found.append((name, sum(values) / len(values), sum(value < 0 for value in values) / len(values)))
    return found


def score_curves(candidates: Sequence[Mapping[str, Any]]) -> dict[str, Points]:
    """Return each validator's scores over the candidates, scaled to 0..1.

    Only the order within a curve is meaningful.
    """
    names = [name for name in (candidates[0] if candidates else {}) if name != "step"]
    curves: dict[str, Points] = {}
    for name in names:
        values = [_number(row[name]) for row in candidates]
        finite = [value for value in values if isfinite(value)] or [0.0]
        low, span = min(finite), max(finite) - min(finite)
        moved = [(value - low) / span if span else 0.5 + 0.0 * value for value in values]
        curves[name] = [(row["step"], value) for row, value in zip(candidates, moved, strict=True)]
    return curves


def count_moves(history: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, float]]:
    """Return each rule that chose weights: its name, how often, and its share of the steps."""
    counted = Counter(str(line["move"]) for line in history)
    return [(move, count, count / len(history)) for move, count in counted.most_common()]


def count_classes(predictions: Sequence[tuple[str, str, float]]) -> list[tuple[str, int, float, float]]:
    """Return each predicted class: its name, how often, its share of the samples, and the mean confidence."""
    counted = Counter(name for _, name, _ in predictions)
    sums: dict[str, float] = {}
    for _, name, confidence in predictions:
        sums[name] = sums.get(name, 0.0) + confidence
    return [(name, n, n / len(predictions), sums[name] / n) for name, n in counted.most_common()]


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
