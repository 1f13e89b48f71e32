"""The min-norm point is exact for gradients of any number, rank and scale."""

from itertools import chain, combinations

import numpy as np
import pytest
from generators import drawn, example_gram
from hypothesis import given, settings

from paretoda.core.min_norm import min_norm


@given(drawn())
@settings(max_examples=600)
def test_every_gradient_falls_by_at_least_the_squared_norm_with_equality_on_the_support(case):
    gram = case.problem.gram
    weights = min_norm(gram)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    excess = gram @ weights - weights @ gram @ weights
    scales = np.abs(gram).max(axis=1)
    assert (excess >= -1e-12 * scales).all()
    lengths = np.sqrt(np.diagonal(gram))
    used = weights * lengths > 1e-6 * (weights * lengths).max()
    assert (np.abs(excess[used]) <= 1e-7 * np.maximum(scales[used], lengths[used] * lengths.min())).all()


def brute_force(gram):
    """Smallest wᵀAw over all supports, each solved by its KKT system."""
    size, best = len(gram), np.inf
    for support in chain.from_iterable(combinations(range(size), k) for k in range(1, size + 1)):
        block = gram[np.ix_(support, support)]
        system = np.block([[block, -np.ones((len(support), 1))], [np.ones((1, len(support))), np.zeros((1, 1))]])
        solution = np.linalg.lstsq(system, np.append(np.zeros(len(support)), 1.0), rcond=None)[0][:-1]
        if (solution >= -1e-9).all():
            best = min(best, solution @ block @ solution)
    return best


@given(drawn(1, 5, ("generic", "conflicting", "low-rank")))
@settings(max_examples=100)
def test_no_support_gives_a_shorter_point(case):
    gram = case.problem.gram
    weights = min_norm(gram)
    assert weights @ gram @ weights <= brute_force(gram) + 1e-9 * np.diagonal(gram).max()


def test_closed_forms_of_two_gradients():
    assert min_norm(example_gram()) == pytest.approx([0.6, 0.4])
    assert min_norm(np.array([[1.0, 2.0], [2.0, 4.0]])) == pytest.approx([1.0, 0.0])
    assert min_norm(np.array([[1.0, -1.0], [-1.0, 1.0]])) == pytest.approx([0.5, 0.5])


def test_a_zero_gradient_takes_all():
    assert min_norm(np.diag([1.0, 0.0, 2.0])).tolist() == [0.0, 1.0, 0.0]
    assert min_norm(np.zeros((2, 2))).tolist() == [0.5, 0.5]
