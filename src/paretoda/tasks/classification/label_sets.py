"""Label sets that differ: which parts suit them, the threshold of the unknown, and what a run says about both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from paretoda.core.options import name_some
from paretoda.errors import DataError
from paretoda.evaluation.model_selection import split_rule
from paretoda.objectives import ALIGNMENTS, GUIDES, TARGET_LOSSES
from paretoda.objectives.parts.label_sets import UNKNOWN, ClassWeights
from paretoda.objectives.parts.novelty import find_threshold, novelties
from paretoda.run.settings import AUTOMATIC, LABELS, Settings
from paretoda.run.task import Conclusion
from paretoda.tasks.classification.predictor import ClassificationPredictor
from paretoda.training.step import Step
from paretoda.types import Objective, Snapshot

_ALWAYS: Mapping[str, Any] = {"select": "last", "reference": False}
"""Most validators expect equal label sets, and so does a comparison with source-only by them."""
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "partial": {**_ALWAYS, "scaling": "joint"},
    "open": _ALWAYS,
}
"""Label sets -> settings of their runs, where the user gives no others.

A target that lacks classes has another mean than the source for that reason alone, which per-domain scaling removes.
"""
PART_OPTIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {"partial": {"propagation": {"balanced": False}}}
"""Label sets -> target loss -> its options, where the user gives no others."""
_UNBALANCED = ("last", "ensv", "entropy", "snd", "dev", "source-risk", "mixval", "circv", LABELS)
"""Rules of selection that do not expect the target to have every class about as often as the source."""
_MOST_NAMED = 40
"""Classes whose weights a sentence lists."""


def check_label_sets(settings: Settings) -> None:
    """Raise ValueError for parts that do not suit the label sets of the run."""
    sets = settings.label_sets
    if sets == "closed":
        _check_closed(settings)
        return
    if settings.from_run is not None:
        raise ValueError(f"--label-sets {sets} compares the target with a source, and --from has none; leave one out")
    if settings.scheme == "hypernetwork":
        raise ValueError(f"the scheme 'hypernetwork' is for --label-sets closed, not for {sets}; leave out --scheme")
    _check_part("method", settings.method, ALIGNMENTS, sets)
    for name in settings.target_losses.values():
        if name != AUTOMATIC:
            _check_part("target loss", name, TARGET_LOSSES, sets)
    if settings.guide != LABELS:
        _check_part("guide", settings.guide, GUIDES, sets)
    for name in split_rule(settings.select):
        if name not in _UNBALANCED:
            raise ValueError(
                f"the validator {name!r} of --select {settings.select} expects the target to have the source's "
                f"classes; with --label-sets {sets} take last, ensv or mixval"
            )
    if settings.reference:
        raise ValueError(f"a reference is compared by validators that do not suit --label-sets {sets}; leave it out")


def _check_closed(settings: Settings) -> None:
    """Refuse losses that are for open label sets only."""
    for name in settings.target_losses.values():
        if name in TARGET_LOSSES and "closed" not in _suited(TARGET_LOSSES[name]):
            raise ValueError(f"the target loss {name!r} is for --label-sets {', '.join(_suited(TARGET_LOSSES[name]))}")


def _check_part(kind: str, name: str, table: Mapping[str, Callable[..., Objective] | None], sets: str) -> None:
    if sets not in _suited(table[name]):
        others = [other for other, make in table.items() if sets in _suited(make)]
        raise ValueError(f"the {kind} {name!r} does not suit --label-sets {sets}; take {', '.join(others)}")


def _suited(make: Callable[..., Objective] | None) -> Sequence[str]:
    """Return the label sets that an entry of a table suits; no objective suits all."""
    if make is None:
        return ("closed", "partial", "open")
    found: tuple[str, ...] = getattr(make.func if isinstance(make, partial) else make, "label_sets", ("closed",))
    return found


def check_classes(settings: Settings, classes: Sequence[str]) -> None:
    """Raise a DataError where a class of the source has the name that samples of no class get."""
    if settings.label_sets == "open" and UNKNOWN in classes:
        raise DataError(f"the source has a class {UNKNOWN!r}, which is what new classes are called; rename it")


def conclude(
    settings: Settings, step: Step, predictor: ClassificationPredictor, snapshot: Snapshot
) -> Conclusion[ClassificationPredictor]:
    """Return the predictor with its threshold of the unknown, and what is to be said about the label sets.

    Args:
        settings: Settings of the run.
        step: The step after training.
        predictor: Predictor of the model of the snapshot.
        snapshot: What the model makes of the whole sets.
    """
    probabilities = _predict_target(snapshot)
    if settings.label_sets == "open":
        return _conclude_open(predictor, novelties(probabilities))
    if settings.label_sets == "partial" and isinstance(step.weights, ClassWeights):
        return _conclude_partial(predictor, step.weights.values.cpu())
    return Conclusion(predictor)


def _predict_target(snapshot: Snapshot) -> Tensor:
    """Return the probabilities of both parts of the target, shape (n, K)."""
    return torch.cat([snapshot.target.logits, snapshot.held_out_target.logits]).softmax(1)


def _conclude_open(predictor: ClassificationPredictor, novelty: Tensor) -> Conclusion[ClassificationPredictor]:
    threshold = find_threshold(novelty)
    share = float((novelty > threshold).double().mean())
    sentence = (
        f"{100 * share:.1f} % of the target samples are {UNKNOWN}: their novelty, one minus the largest probability, "
        f"is above {threshold:.4f}, where the target's novelties split in two."
    )
    facts = {"label_sets": "open", "novelty_threshold": threshold, "unknown_share": share}
    # A temperature fitted on the source would move the novelties away from their threshold.
    return Conclusion(replace(predictor, threshold=threshold, temperature=None), facts, [sentence])


def _conclude_partial(predictor: ClassificationPredictor, weights: Tensor) -> Conclusion[ClassificationPredictor]:
    found = dict(zip(predictor.classes, weights.tolist(), strict=True))
    falling = sorted(found, key=lambda name: -found[name])
    listed = name_some([f"{name} {found[name]:.2f}" for name in falling], most=_MOST_NAMED)
    sentence = f"By the predictions of the target its classes weigh, in the source loss and the alignment: {listed}."
    return Conclusion(predictor, {"label_sets": "partial", "class_weights": found}, [sentence])
