"""Comparisons agree with scipy, with Demšar's printed values and with their own definitions."""

from itertools import product
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare, permutation_test, wilcoxon

from paretoda.report.significance import (
    Ranking,
    bootstrap_interval,
    compare,
    compare_all,
    critical_q,
    holm,
    rank_contenders,
    sign_flip_p,
)

DEMSAR = {
    0.05: [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164],
    0.10: [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920],
}


@pytest.mark.parametrize("alpha", DEMSAR)
def test_critical_values_are_those_that_demsar_prints(alpha: float) -> None:
    assert [critical_q(k, alpha) for k in range(2, 11)] == pytest.approx(DEMSAR[alpha], abs=1.1e-3)


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=9))
def test_the_sign_flip_test_is_scipys(values: list[int]) -> None:
    data = (np.array(values, float),)
    theirs = permutation_test(data, lambda x: abs(x.sum()), permutation_type="samples", alternative="greater")
    assert sign_flip_p(values) == pytest.approx(theirs.pvalue)


def test_on_ranks_the_sign_flip_test_is_wilcoxons() -> None:
    values = [1.0, -2.0, 3.0, 4.0, -5.0, 6.0, 7.0, 8.0]
    assert sign_flip_p(values) == pytest.approx(wilcoxon(values, method="exact").pvalue)


def test_drawn_patterns_agree_with_all_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    values = list(np.random.default_rng(0).normal(0.4, 1, 12))
    exact = sign_flip_p(values)
    monkeypatch.setattr("paretoda.report.significance.EXACT", 1)
    assert sign_flip_p(values) == pytest.approx(exact, abs=0.01)
    assert sign_flip_p(values) == sign_flip_p(values)


@pytest.mark.parametrize("size", [7, 20])
def test_without_a_difference_p_is_below_a_level_as_often_as_the_level_says(size: int) -> None:
    random = np.random.default_rng(1)
    ps = np.array([sign_flip_p(random.normal(size=size), seed=i, draws=500) for i in range(600)])
    for level in (0.05, 0.25, 0.5, 0.75):
        assert np.mean(ps <= level) == pytest.approx(level, abs=4 * (level * (1 - level) / 600) ** 0.5 + 1 / 64)


def test_seeds_are_no_evidence_about_other_tasks() -> None:
    first = {(task, seed): 0.6 for task in "abc" for seed in range(5)}
    second = dict.fromkeys(first, 0.5)
    by_task, by_run = compare(first, second), compare(first, second, by="run")
    assert by_task is not None
    assert by_run is not None
    assert by_task.p == by_task.smallest_p == 0.25
    assert by_run.p == 2**-14
    assert by_task.difference == pytest.approx(0.1)
    assert by_task.runs == 15


def test_wins_ties_and_losses_count_tasks_over_shared_runs() -> None:
    first = {("a", 0): 0.6, ("a", 1): 0.7, ("b", 0): 0.5, ("c", 0): 0.3, ("d", 9): 1.0}
    second = {("a", 0): 0.5, ("b", 0): 0.5001, ("c", 0): 0.4, ("d", 0): 0.0}
    pair = compare(first, second)
    assert pair is not None
    assert (pair.wins, pair.ties, pair.losses, pair.runs) == (1, 1, 1, 3)
    assert compare({("a", 0): 1.0}, {("b", 0): 1.0}) is None


def test_one_run_has_no_interval_and_no_evidence() -> None:
    pair = compare({("a", 0): 0.6}, {("a", 0): 0.5})
    assert pair is not None
    assert isnan(pair.low)
    assert pair.p == pair.smallest_p == 1.0


def test_the_interval_spans_tasks_and_seeds() -> None:
    assert bootstrap_interval({"a": [0.1, 0.1], "b": [0.3]}) == pytest.approx((0.1, 0.3))
    assert bootstrap_interval({"a": [0.0, 0.2]}) == pytest.approx((0.0, 0.2))
    random = np.random.default_rng(2)
    inside = 0
    for trial in range(200):
        tasks = {str(t): list(random.normal(random.normal(0.5, 1), 0.5, 3)) for t in range(20)}
        low, high = bootstrap_interval(tasks, seed=trial, draws=400)
        inside += low <= 0.5 <= high
    assert 175 <= inside <= 200


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0.001, 0.999))
def test_holm_rejects_what_its_definition_rejects(ps: list[float], alpha: float) -> None:
    rejected, order = set(), sorted(range(len(ps)), key=ps.__getitem__)
    for step, place in enumerate(order):
        if ps[place] * (len(ps) - step) > alpha:
            break
        rejected.add(place)
    assert {place for place, p in enumerate(holm(ps)) if p <= alpha} == rejected


def test_holm_leaves_out_what_was_no_comparison() -> None:
    assert holm([0.04, nan, 0.01])[::2] == pytest.approx([0.04, 0.02])
    assert isnan(holm([0.04, nan])[1])


def test_all_contenders_are_one_family() -> None:
    runs = {name: {(str(t), 0): gain for t in range(8)} for name, gain in (("base", 0.5), ("x", 0.6), ("y", 0.4))}
    found = compare_all(runs, "base")
    assert set(found) == {"x", "y"}
    assert found["x"].p == 2**-7
    assert found["x"].p_holm == 2**-6


def test_ranks_are_averaged_and_tested() -> None:
    scores = {"low": [0.1, 0.2, 0.1, 0.3], "high": [0.9, 0.8, 0.7, 0.9], "mid": [0.5, 0.2, 0.6, 0.4]}
    ranking = rank_contenders(scores)
    assert list(ranking.ranks.items()) == [("high", 1.0), ("mid", 2.125), ("low", 2.875)]
    assert ranking.p == pytest.approx(friedmanchisquare(*scores.values()).pvalue)
    assert ranking.critical_difference == pytest.approx(2.3437 * (12 / 24) ** 0.5, abs=1e-4)
    assert rank_contenders({name: [0.5, 0.5] for name in "abc"}).p == 1.0
    assert isnan(rank_contenders({"a": [0.1], "b": [0.2]}).p)


@given(st.lists(st.floats(1, 8), min_size=2, max_size=8).map(sorted), st.floats(0.1, 8))
def test_groups_are_all_largest_stretches_within_the_critical_difference(ranks: list[float], reach: float) -> None:
    found = Ranking({str(i): r for i, r in enumerate(ranks)}, 5, 0.5, reach).groups()
    size = len(ranks)
    near = {(i, j) for i, j in product(range(size), repeat=2) if i < j and ranks[j] - ranks[i] <= reach}
    assert set(found) == {(i, j) for i, j in near if (i - 1, j) not in near and (i, j + 1) not in near}
