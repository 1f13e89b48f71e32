"""Which checkpoint to keep, chosen without a label, and a warning where adaptation made the model worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from paretoda.core.wording import join_words

ENSEMBLE = ("im", "mixval", "dev")
"""One witness of each kind, so that no kind outvotes another: `im` looks at the predictions, `mixval` at how the model
behaves between samples, `dev` at labelled errors carried over to the target. The others repeat one of these (`bnm`,
`corr-c` and half of `transfer-score` are close to `im`), know nothing of the target (`source-risk`) or like collapse
(`entropy`, `snd`). Chosen by this argument, not by looking at target labels."""


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Args:
        index: Of the chosen candidate.
        votes: Validator -> the candidate that it would choose alone; the chosen one where that is as good.
        sentence: The same in plain words.
    """

    index: int
    votes: dict[str, int]
    sentence: str


@dataclass(frozen=True)
class Ensemble:
    """The mean rank of every candidate over several validators: scales and outliers do not matter.

    Args:
        names: Of the validators.
    """

    names: tuple[str, ...] = ENSEMBLE

    def __call__(self, scores: Mapping[str, Sequence[float]]) -> NDArray[np.float64]:
        """Mean ranks, shape (candidates,), higher is better; equal scores share their rank, NaN ranks last."""
        if missing := [name for name in self.names if name not in scores]:
            raise ValueError(f"no scores of {', '.join(missing)}; there are those of {', '.join(scores) or 'nobody'}")
        ranks = [rankdata(_finite(scores[name]), method="average") for name in self.names]
        mean: NDArray[np.float64] = np.mean(ranks, axis=0)
        return mean


def choose(scores: Mapping[str, Sequence[float]], rule: str = "ensemble", names: Sequence[str] = ()) -> Choice:
    """The candidate with the highest score or mean rank; among equals the last, which was trained longest.

    Args:
        scores: Validator -> the score of every candidate, higher is better.
        rule: a validator's name, several joined by "+", or "ensemble" for `ENSEMBLE`.
        names: Of the candidates, for the sentence; numbered where there are none.
    """
    lengths = {len(values) for values in scores.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError("every validator must have scored the same candidates, and at least one")
    members = ENSEMBLE if rule == "ensemble" else tuple(rule.split("+"))
    index = _last_best(Ensemble(members)(scores))
    votes = {}
    for name, values in scores.items():
        finite = _finite(values)
        votes[name] = index if finite[index] == finite.max() else _last_best(finite)
    names = names or [f"candidate {i}" for i in range(lengths.pop())]
    return Choice(index, votes, _sentence(members, index, votes, names))


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    """A candidate whose score is not a number, a diverged one, is never the best."""
    scores = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(scores), -np.inf, scores)


def _last_best(values: NDArray[np.float64]) -> int:
    return int(np.flatnonzero(values == values.max())[-1])


def _sentence(members: tuple[str, ...], index: int, votes: Mapping[str, int], names: Sequence[str]) -> str:
    by = members[0] if len(members) == 1 else f"the mean rank of {join_words(members)}"
    others = {name: vote for name, vote in votes.items() if vote != index}
    if not others:
        return f"By {by}: {names[index]}" + (", and no validator disagrees." if len(votes) > 1 else ".")
    camps = {vote: [name for name in others if others[name] == vote] for vote in others.values()}
    against = join_words([f"{join_words(camp)} would take {names[vote]}" for vote, camp in camps.items()])
    return f"By {by}: {names[index]}; the validators disagree: {against}."


COMPARABLE = ("im", "bnm", "corr-c", "mixval")
"""Validators whose scores mean the same for two different models on one target."""

MARGIN = 0.01
"""Relative fall below which two scores count as equal."""


def negative_transfer_warning(adapted: Mapping[str, float], source_only: Mapping[str, float]) -> str | None:
    """One sentence where a comparable validator puts the adapted model below the source-only one, None where none does.

    Args:
        adapted: Validator -> score of the adapted model.
        source_only: The same of the model trained on the source alone.
    """
    known = [name for name in COMPARABLE if name in adapted and name in source_only]
    fallen = [name for name in known if not adapted[name] >= source_only[name] - MARGIN * abs(source_only[name])]
    if not fallen:
        return None
    numbers = join_words([f"{name} {adapted[name]:.3f} instead of {source_only[name]:.3f}" for name in fallen])
    doubt = "has probably" if len(fallen) == len(known) else "may have"
    share = f"{len(fallen)} of {len(known)} label-free validators"
    return (
        f"Adaptation {doubt} made the model worse on the target: {share} score it below the source-only model "
        f"({numbers}); look at its predictions, or use the source-only model."
    )
