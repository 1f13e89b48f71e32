"""Whether the target seems to have other classes than the source: what a model without adaptation says of it.

An adapted model would not show it: its losses spread the target over all classes, and make it sure of every sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from paretoda.core.options import name_some
from paretoda.data.doctor.findings import Finding
from paretoda.objectives.parts.label_sets import find_space
from paretoda.objectives.parts.neighbours import find_nearest, propagate, weigh_neighbours
from paretoda.objectives.parts.novelty import log_odds, novelties, split_in_two
from paretoda.run.build import build_step
from paretoda.run.settings import Settings
from paretoda.run.task import Task
from paretoda.run.train import train
from paretoda.training.snapshot import take_snapshot
from paretoda.types import Snapshot, Source

_RARE, _SELDOM = 0.2, 0.4
"""A class seems to be absent whose estimated share of the target is below the first part of its share of the source,
and whose mean prediction is below the second one."""
_EXPECTED = 10
"""Samples that a class needs to be expected in the target, so that their absence means something."""
_SURPRISED, _LOST = 0.2, 0.6
"""Shares of the target as new as the newest twentieth of the source, above which the model knows too little of it to
tell which classes are absent, and to tell anything."""
_SPLIT, _APART, _MAJORITY = 0.8, 4.0, 0.8
"""Share of the variance of novelties that two groups explain, and distance of their means, of a target in two parts;
where more than the majority looks new, it is the gap between the domains that does."""
_NEIGHBOURS, _ROUNDS = 20, 10
_MOST = 5000
"""Target samples among which neighbours are searched."""
_STEPS = 200
"""Steps that the doctor's own model is trained for."""


def estimate_shares(probabilities: Tensor, shares: Tensor, rounds: int = 200) -> Tensor:
    """Return the class frequencies under which the predictions have themselves as their mean (Saerens et al., 2002).

    Args:
        probabilities: Predictions of the target, shape (n, K).
        shares: Class frequencies of the source, shape (K,), all positive.
        rounds: Number of rounds of expectation maximisation.

    Examples:
        >>> sure = torch.tensor([[0.99, 0.01]] * 3 + [[0.01, 0.99]]).double()
        >>> estimate_shares(sure, torch.tensor([0.5, 0.5]).double()).round(decimals=2)
        tensor([0.7600, 0.2400], dtype=torch.float64)
    """
    found = shares
    for _ in range(rounds):
        weighed = probabilities * (found / shares)
        found = (weighed / weighed.sum(1, keepdim=True)).mean(0)
    return found


def doubt_label_sets(snapshot: Snapshot, classes: Sequence[str]) -> list[str]:
    """Return a sentence on what speaks against equal classes in source and target; mostly there is none.

    Args:
        snapshot: What a model that was trained on the source alone makes of the whole sets.
        classes: Names of the classes.
    """
    probabilities = torch.cat([snapshot.target.logits, snapshot.held_out_target.logits]).double().softmax(1)
    usual = novelties(snapshot.held_out_source.logits.double().softmax(1)).quantile(0.95)
    surprised = float((novelties(probabilities) > usual).double().mean())
    if surprised < _SURPRISED and (absent := _find_absent_classes(snapshot.source, probabilities, classes)):
        names = name_some(absent)
        return [f"The target seems to lack classes of the source: {names}; if it does, take --label-sets partial."]
    if surprised < _LOST and (share := _find_strange_share(snapshot)) is not None:
        return [
            f"{100 * share:.0f} % of the target are far from every class of the source; if there are new classes among "
            "them, take --label-sets open."
        ]
    return []


def _find_absent_classes(source: Source, probabilities: Tensor, classes: Sequence[str]) -> list[str]:
    """Return classes of the source that the target seems to lack, by its predictions (n, K)."""
    counts = source.labels.bincount(minlength=len(classes)).double()
    present = counts.nonzero().squeeze(1)
    shares = counts[present] / counts.sum()
    known = probabilities[:, present] / probabilities[:, present].sum(1, keepdim=True)
    ratios, means = estimate_shares(known, shares) / shares, known.mean(0) / shares
    absent = (ratios < _RARE) & (means < _SELDOM) & (shares * len(known) >= _EXPECTED)
    return [classes[place] for place in present[absent].tolist()]


def _find_strange_share(snapshot: Snapshot) -> float | None:
    """Return the share of target samples that look new, where the target falls in two parts; otherwise None."""
    count = len(snapshot.target.logits)
    some = torch.linspace(0, count - 1, min(count, _MOST)).round().long()
    own = log_odds(novelties(snapshot.target.logits[some].double().softmax(1))).float()
    places = find_nearest(find_space(snapshot).cpu()[some], _NEIGHBOURS)
    spread = propagate(own.unsqueeze(1), places, weigh_neighbours(places).float(), rounds=_ROUNDS).squeeze(1)
    split = split_in_two(spread)
    share, distance = float((spread > split.threshold).double().mean()), split.high - split.low
    explained = share * (1 - share) * distance**2 / max(float(spread.var()), 1e-12)
    return share if explained > _SPLIT and distance > _APART and share < _MAJORITY else None


def examine_label_sets(task: Task[Any, Any], source: Any, target: Any) -> list[Finding]:
    """Return warnings on label sets that seem to differ, by a small model of the source that is trained for this.

    There are none for images, whose features would take long to compute.

    Args:
        task: The task of classification.
        source: Source, as for `make_pair`, without errors.
        target: Target, as for `make_pair`, without errors.
    """
    settings = Settings(
        method="source-only",
        target_loss="none",
        scheme="linear",
        select="last",
        steps=_STEPS,
        scaling="joint",  # per-domain scaling would hide that classes are absent
    )
    device = torch.device("cpu")
    pair = task.open(settings, source, target, device).pair
    if pair.kind != "features":
        return []
    step = train(settings, pair, build_step(task, settings, pair, device)).step
    said = doubt_label_sets(take_snapshot(pair, step.model, device), pair.classes)
    return [Finding("warning", "both", sentence) for sentence in said]
