"""Weights for the plain sum: a small grid for every contender with fixed weights, and a label-free judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from paretoda.bench.contenders import RunSpec
from paretoda.bench.store import Row
from paretoda.core.names import unknown
from paretoda.evaluation.validators import VALIDATORS
from paretoda.job.settings import SettingsError, make_settings

GRID = (0.1, 0.3, 1.0)
"""What the alignment counts beside the source's 1, and what the losses on the target count, all of them alike."""


def weight_variants(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the grid as settings; nothing for a contender whose weights are not free.

    Equal weights are the contender as it is, so that a run of the plain sum that is there already is not made again.

    Args:
        settings: of the contender.
    """
    if "baseline" in settings:
        return []
    made = make_settings(settings)
    if made.scheme != "linear" or made.loss_weights or len(made.losses) < 2:
        return []
    groups = list(dict.fromkeys(_group(name) for name in made.losses))
    found: list[dict[str, Any]] = []
    for values in product(*[(1.0,) if group == "source" else GRID for group in groups]):
        weights = dict(zip(groups, values, strict=True))
        chosen = tuple(weights[_group(name)] for name in made.losses)
        found.append({} if set(chosen) == {1.0} else {"loss_weights": chosen})
    return found


def _group(loss: str) -> str:
    """Losses of one group share their weight."""
    return loss if loss in ("source", "alignment") else "target"


def tune_weights(specs: Sequence[RunSpec], judge: str) -> list[RunSpec]:
    """The plan with every run of a plain sum repeated for every combination of weights.

    Args:
        specs: of all runs.
        judge: a validator, or "ensemble" for the mean rank of several; it chooses among a tuned contender's runs.
    """
    if judge not in ("ensemble", *VALIDATORS):
        raise SettingsError(unknown("validator", judge, ["ensemble", *VALIDATORS]))
    found: list[RunSpec] = []
    for spec in specs:
        grid = weight_variants(spec.settings)
        found += [replace(spec, variant={**spec.variant, **weights}, judge=judge) for weights in grid] or [spec]
    if len(found) == len(specs):
        raise SettingsError(
            "--tune-weights tunes the scheme 'linear': no contender has it with several losses and without loss_weights"
        )
    return found


def told(rows: Sequence[Row]) -> list[str]:
    """One sentence for each contender whose weights were tuned: what was chosen, and how often.

    Args:
        rows: that were chosen, one for each contender, task and seed.
    """
    tuned = [row for row in rows if row.get("judge") and "error" not in row]
    sentences = []
    for name in dict.fromkeys(row["name"] for row in tuned):
        mine = [row for row in tuned if row["name"] == name]
        counts = Counter(_weights(row) for row in mine).most_common()
        often = ", ".join(f"{weights} ({count} of {len(mine)})" for weights, count in counts)
        sentences.append(f"{name}: {mine[0]['judge']} chose the weights {often}.")
    return sentences


def _weights(row: Row) -> str:
    losses = make_settings(row["settings"]).losses
    values = row["variant"].get("loss_weights", [1.0] * len(losses))
    return " + ".join(f"{value:g} {loss}" for value, loss in zip(values, losses, strict=True))
