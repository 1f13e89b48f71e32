"""Choice of a checkpoint without labels, and a warning where adaptation made the model worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paretoda.core.options import join_words

ENSEMBLE = ("im", "mixval", "mano")
"""The vote: `im` scores the balance and `mano` the size of the predictions, `mixval` the behaviour of the model between
samples. DEV left the vote: its own choices cost 1.9 points on average and up to 20 on the development tasks
(`benchmarks/regrets.py`, docs/results.md). The others repeat one of these, do not use the target (`source-risk`) or
favour collapse (`entropy`, `snd`)."""
COMPARABLE = ("im", "bnm", "corr-c", "mixval")
"""Validators whose scores are comparable between two models on one target."""
MARGIN = 0.01
"""Relative difference below which two scores count as equal."""


@dataclass(frozen=True)
class Choice:
    """Chosen candidate.

    Args:
        index: Index of the chosen candidate.
        votes: Validator -> the candidate that it would choose alone; the chosen one where that is as good.
        sentence: The choice in words.

    Examples:
        >>> Choice(index=1, votes={"im": 1}, sentence="By im: step 100.").index
        1
    """

    index: int
    votes: dict[str, int]
    sentence: str


@dataclass(frozen=True)
class Ensemble:
    """Mean rank of every candidate over several validators: scales and outliers have no effect.

    Args:
        names: Names of the validators.

    Examples:
        >>> Ensemble(("im", "dev"))({"im": [0.1, 0.9, 0.5], "dev": [-0.3, -0.1, -0.2]}).tolist()
        [1.0, 3.0, 2.0]
    """

    names: tuple[str, ...] = ENSEMBLE

    def __call__(self, scores: Mapping[str, Sequence[float]]) -> NDArray[np.float64]:
        """Return the mean ranks, shape (candidates,), higher is better; equal scores share their rank, NaN ranks last.

        Raises:
            ValueError: There are no scores of a validator.
        """
        if missing := [name for name in self.names if name not in scores]:
            raise ValueError(f"no scores of {', '.join(missing)}; there are those of {', '.join(scores) or 'none'}")
        ranks = [_ranks(_finite(scores[name])) for name in self.names]
        mean: NDArray[np.float64] = np.mean(ranks, axis=0)
        return mean


def split_rule(rule: str) -> tuple[str, ...]:
    """Return the validators that a rule of selection uses; none for "last".

    Args:
        rule: "ensemble", "last", the name of a validator, or several joined by "+".

    Examples:
        >>> split_rule("ensv+im")
        ('ensv', 'im')
    """
    return {"ensemble": ENSEMBLE, "last": ()}.get(rule, tuple(rule.split("+")))


def choose(scores: Mapping[str, Sequence[float]], rule: str = "ensemble", names: Sequence[str] = ()) -> Choice:
    """Choose the candidate with the highest score or mean rank; among equals the last, which was trained longest.

    Args:
        scores: Validator -> the score of every candidate, higher is better.
        rule: Name of a validator, several joined by "+", or "ensemble" for `ENSEMBLE`.
        names: Names of the candidates, for the sentence; without them they are numbered.

    Returns:
        The choice, with the votes of all validators and a sentence.

    Raises:
        ValueError: The validators scored different numbers of candidates, or none.

    Examples:
        >>> choose({"im": [0.1, 0.9], "snd": [2.0, 1.0]}, rule="im", names=["step 50", "step 100"]).sentence
        'By im: step 100; the validators disagree: snd would take step 50.'
    """
    lengths = {len(values) for values in scores.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError("every validator must have scored the same candidates, and at least one")
    members = split_rule(rule)
    index = _last_best(Ensemble(members)(scores))
    votes = {}
    for name, values in scores.items():
        finite = _finite(values)
        votes[name] = index if finite[index] == finite.max() else _last_best(finite)
    names = names or [f"candidate {i}" for i in range(lengths.pop())]
    return Choice(index, votes, _sentence(members, index, votes, names))


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    """Scores with NaN replaced, so that a diverged candidate is never the best."""
    scores = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(scores), -np.inf, scores)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1 on; equal values share the mean of their ranks."""
    below = (values[:, None] > values).sum(axis=1)
    equal = (values[:, None] == values).sum(axis=1)
    ranks: NDArray[np.float64] = below + (equal + 1) / 2
    return ranks


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


def negative_transfer_warning(
    adapted: Mapping[str, float], reference: Mapping[str, float], name: str = "the source-only model"
) -> str | None:
    """Warn in one sentence if a comparable validator scores the adapted model below the one without adaptation.

    Args:
        adapted: Validator -> score of the adapted model.
        reference: Validator -> score of the model without adaptation.
        name: What the sentence calls that model.

    Returns:
        The sentence; None if no validator scores the adapted model lower.

    Examples:
        >>> negative_transfer_warning({"im": 1.2}, {"im": 1.0}) is None
        True
        >>> negative_transfer_warning({"im": 0.5}, {"im": 1.0}).split(":")[0]
        'Adaptation has probably made the model worse on the target'
    """
    known = [rule for rule in COMPARABLE if rule in adapted and rule in reference]
    fallen = [rule for rule in known if not adapted[rule] >= reference[rule] - MARGIN * abs(reference[rule])]
    if not fallen:
        return None
    numbers = join_words([f"{rule} {adapted[rule]:.3f} instead of {reference[rule]:.3f}" for rule in fallen])
    doubt = "has probably" if len(fallen) == len(known) else "may have"
    share = f"{len(fallen)} of {len(known)} label-free validators"
    return (
        f"Adaptation {doubt} made the model worse on the target: {share} score it below {name} "
        f"({numbers}); look at its predictions, or use {name}."
    )
