"""What the page of a run is made of, as plain values, and the curves that its history holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isfinite
from typing import Any

from paretoda.report.charts import Points
from paretoda.report.confusion import Confusion
from paretoda.report.label_maps import MapCard, Overlap
from paretoda.report.scatter import FeatureMap


@dataclass(frozen=True)
class Card:
    """A sample with its image.

    Args:
        image: a data URI.
        name: of the sample.
        prediction: its class.
        confidence: of the prediction.
        oracle_label: where target labels were given.
    """

    image: str
    name: str
    prediction: str
    confidence: float
    oracle_label: str | None = None


@dataclass(frozen=True)
class Pictures:
    """What only the model and the data can show.

    Args:
        plane: features of both domains.
        cards: samples of the target with their images.
        confusions: labels against predictions, of the held-out source and, where labels were given, of the target.
        scenes: images of the target with their label maps, in segmentation.
        overlaps: of classes, of the held-out source and, where labels were given, of the target; in segmentation.
    """

    plane: FeatureMap | None = None
    cards: Sequence[Card] = ()
    confusions: Sequence[Confusion] = ()
    scenes: Sequence[MapCard] = ()
    overlaps: Sequence[Overlap] = ()


NO_PICTURES = Pictures()


@dataclass(frozen=True)
class RunFacts:
    """A finished run without its networks.

    Args:
        title: what the page is called.
        settings: name -> value.
        environment: name -> version.
        history: one line a step: step, losses, weights, move, cosines, guide_loss, guide_cosines.
        candidates: one row each: step and scores.
        chosen: after how many steps the chosen model was taken.
        scores: of the chosen model, without labels.
        sentences: what the user should know.
        predictions: (name, class, confidence) of the target's samples.
        inputs: domain -> where its data are.
        pictures: what the model and the data show.
    """

    title: str
    settings: Mapping[str, Any]
    environment: Mapping[str, str]
    history: Sequence[Mapping[str, Any]]
    candidates: Sequence[Mapping[str, Any]] = ()
    chosen: int = 0
    scores: Mapping[str, float] = field(default_factory=dict)
    sentences: Sequence[str] = ()
    predictions: Sequence[tuple[str, str, float]] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    pictures: Pictures = NO_PICTURES


def named_curves(history: Sequence[Mapping[str, Any]], key: str) -> dict[str, Points]:
    """The curves of a field that maps names to numbers, such as losses or weights."""
    names = history[0][key] if history else {}
    return {name: [(line["step"], _number(line[key].get(name))) for line in history] for name in names}


def guide_curve(history: Sequence[Mapping[str, Any]]) -> dict[str, Points]:
    """The guide's loss at the steps that had one."""
    points = [(line["step"], _number(line["guide_loss"])) for line in history if line.get("guide_loss") is not None]
    return {"guide": points} if points else {}


def cosine_curves(history: Sequence[Mapping[str, Any]]) -> dict[str, Points]:
    """The cosine of every pair of gradients, and of each with the guide's."""
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
    """Each pair of gradients: its name, mean cosine, and the share of steps at which they pull against each other."""
    found = []
    for name, points in curves.items():
        values = [value for _, value in points if isfinite(value)]
        if values:
            found.append((name, sum(values) / len(values), sum(value < 0 for value in values) / len(values)))
    return found


def score_curves(candidates: Sequence[Mapping[str, Any]]) -> dict[str, Points]:
    """Each validator's scores over the candidates, moved to 0..1: only the order within a curve means something."""
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
    """Each rule that chose weights: its name, how often, and which share of the steps."""
    counted = Counter(str(line["move"]) for line in history)
    return [(move, count, count / len(history)) for move, count in counted.most_common()]


def count_classes(predictions: Sequence[tuple[str, str, float]]) -> list[tuple[str, int, float, float]]:
    """Each predicted class: its name, how often, which share of the samples, and the mean confidence."""
    counted = Counter(name for _, name, _ in predictions)
    sums: dict[str, float] = {}
    for _, name, confidence in predictions:
        sums[name] = sums.get(name, 0.0) + confidence
    return [(name, n, n / len(predictions), sums[name] / n) for name, n in counted.most_common()]


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
