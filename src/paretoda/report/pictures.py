"""What only the model and the data can show: the map of features, the held-out source, samples with their images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.data import DomainPair
from paretoda.data.rows import Rows
from paretoda.data.samples import Samples
from paretoda.evaluation.metrics import confusion_matrix
from paretoda.evaluation.predictions import predict
from paretoda.report.confusion import Confusion
from paretoda.report.facts import Card, Pictures
from paretoda.report.scatter import FeatureMap, make_feature_map
from paretoda.report.thumbnails import SIDE, make_thumbnail
from paretoda.types import Model

SHOWN_POINTS = 600
"""Number of samples of each domain on the map."""
SHOWN_CARDS = 24
_BATCH = 256


def take_pictures(
    model: Model,
    pair: DomainPair,
    target: Samples,
    predictions: Sequence[tuple[str, str, float]],
    device: torch.device | None = None,
    *,
    has_source: bool = True,
) -> Pictures:
    """Return all pictures that need no label of the target.

    Args:
        model: The chosen model, already on `device`.
        pair: The pair that it was trained on.
        target: The samples as they were given, for their images.
        predictions: (name, class, confidence) of these samples, in their order.
        device: Device of the model; the CPU by default.
        has_source: Whether the pair has a source of its own; without one the target stands in its place.
    """
    device = device or torch.device("cpu")
    held_out = []
    if has_source and len(pair.source_held_out):
        _, logits = predict(model, pair.inputs("held-out-source", _BATCH), device=device)
        labels = pair.labels_of("held-out-source").numpy()
        held_out = [count_confusion("held-out source", pair.classes, labels, logits.argmax(dim=1).numpy())]
    shown = []
    if target.names(range(len(target))) == [name for name, _, _ in predictions]:
        shown = make_cards(target, [(name, confidence) for _, name, confidence in predictions])
    return Pictures(_make_plane(model, pair, device) if has_source else None, shown, held_out)


def take_oracle_pictures(
    classes: Sequence[str], samples: Samples, best: NDArray[np.int64], confidences: NDArray[np.float32]
) -> Pictures:
    """Return the pictures of samples with their labels: oracle, for inspection only.

    Args:
        classes: Names that a prediction can have.
        samples: Samples opened with labels.
        best: Predictions of these samples as positions in `classes`, shape (n,).
        confidences: Their confidences, shape (n,).
    """
    assert samples.labels is not None
    oracle_labels = samples.labels.values
    confusion = count_confusion("target (oracle)", classes, oracle_labels, best, oracle=True)
    predictions = [(classes[place], float(most)) for place, most in zip(best, confidences, strict=True)]
    return Pictures(None, make_cards(samples, predictions, [classes[place] for place in oracle_labels]), [confusion])


def count_confusion(
    heading: str,
    classes: Sequence[str],
    labels: NDArray[np.int64],
    predicted: NDArray[np.int64],
    *,
    oracle: bool = False,
) -> Confusion:
    """Return the confusion matrix of these labels and predictions, as plain numbers."""
    matrix = confusion_matrix(torch.from_numpy(predicted), torch.from_numpy(labels), len(classes))
    return Confusion(heading, tuple(classes), matrix.tolist(), oracle)


def make_cards(
    samples: Samples, predictions: Sequence[tuple[str, float]], oracle_labels: Sequence[str] | None = None
) -> list[Card]:
    """Return the least certain samples, the most certain of each class and, with labels, the most certain mistakes.

    Only images have cards.
    """
    if samples.kind != "images":
        return []
    places = _choose_shown(predictions, oracle_labels)
    images = samples.read(places, SIDE)
    return [
        Card(make_thumbnail(image), name, *predictions[place], None if oracle_labels is None else oracle_labels[place])
        for place, image, name in zip(places, images, samples.names(places), strict=True)
    ]


def _choose_shown(predictions: Sequence[tuple[str, float]], oracle_labels: Sequence[str] | None) -> list[int]:
    """Return positions, the least certain first."""
    rising = sorted(range(len(predictions)), key=lambda place: predictions[place][1])
    falling, third = rising[::-1], SHOWN_CARDS // 3
    taken = [prediction for prediction, _ in predictions]
    chosen = {*rising[: third if oracle_labels else 2 * third], *_vary(falling, taken, third)}
    if oracle_labels is not None:
        kinds = list(zip(oracle_labels, taken, strict=True))
        chosen.update(_vary([place for place in falling if oracle_labels[place] != taken[place]], kinds, third))
    return [place for place in rising if place in chosen]


def _vary(ranked: Sequence[int], kinds: Sequence[Hashable], count: int) -> list[int]:
    """Return the first of each kind, then the second of each, and so on."""
    seen: Counter[Hashable] = Counter()
    turns = []
    for place in ranked:
        turns.append((seen[kinds[place]], place))
        seen[kinds[place]] += 1
    return [place for _, place in sorted(turns, key=lambda turn: turn[0])[:count]]


def _make_plane(model: Model, pair: DomainPair, device: torch.device) -> FeatureMap | None:
    some = {
        "source": _spread_positions(len(pair.source.samples)),
        "target": _spread_positions(len(pair.target.samples)),
    }
    source, _ = predict(model, _inputs(pair.source, some["source"]), device=device)
    target, logits = predict(model, _inputs(pair.target, some["target"]), device=device)
    return make_feature_map(
        (source.numpy(), pair.labels[some["source"]]), (target.numpy(), logits.argmax(dim=1).numpy()), pair.classes
    )


def _inputs(rows: Rows, places: NDArray[np.int64]) -> Iterator[Tensor]:
    for start in range(0, len(places), _BATCH):
        yield rows.evaluate(places[start : start + _BATCH])


def _spread_positions(count: int) -> NDArray[np.int64]:
    """Return a few positions, spread evenly."""
    return np.unique(np.linspace(0, count - 1, min(count, SHOWN_POINTS)).astype(np.int64))
