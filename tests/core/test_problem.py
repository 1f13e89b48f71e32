"""A problem is checked once, where it is made; the message names the entry."""

import numpy as np
import pytest

from paretoda.core.problem import Guide, GuideMissingError, Problem, ProblemError, Weights

GRAM = np.array([[1.0, -1.0], [-1.0, 2.0]])


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        (np.ones((2, 3)), "square"),
        (np.ones((0, 0)), "square"),
        (np.ones(4), "square"),
        ([[1.0, np.nan], [0.0, 1.0]], r"gram\[0, 1\] is nan"),
        ([[1.0, 0.0], [np.inf, 1.0]], r"gram\[1, 0\] is inf"),
        ([[1.0, 0.5], [-0.5, 1.0]], r"gram\[0, 1\] is 0.5 but gram\[1, 0\] is -0.5"),
        ([[-1.0]], r"gram\[0, 0\] is -1.0"),
        ([[1.0, 2.0], [2.0, 1.0]], r"gram\[0, 1\] is 2.0, larger than the product of the norms"),
        ([[0.0, 1e-3], [1e-3, 1.0]], r"gram\[0, 1\]"),
    ],
)
def test_what_no_gradients_can_have_is_refused_with_the_entry(gram, message):
    with pytest.raises(ProblemError, match=message):
        Problem(np.array(gram), np.ones(len(gram)))


def test_losses_guide_and_roles_must_match_the_gram():
    with pytest.raises(ProblemError, match=r"losses must have shape \(2,\), got \(3,\)"):
        Problem(GRAM, np.ones(3))
    with pytest.raises(ProblemError, match=r"losses\[1\] is nan"):
        Problem(GRAM, np.array([1.0, np.nan]))
    with pytest.raises(ProblemError, match="roles has 1"):
        Problem(GRAM, np.ones(2), roles=("source",))
    with pytest.raises(ProblemError, match=r"guide\.dots has 3"):
        Problem(GRAM, np.ones(2), Guide(np.ones(3)))
    with pytest.raises(ProblemError, match=r"guide\.dots\[0\] is 9"):
        Problem(GRAM, np.ones(2), Guide(np.array([9.0, 0.0]), square=1.0))
    with pytest.raises(ProblemError, match=r"guide\.loss is NaN"):
        Guide(np.ones(2), loss=float("nan"))
    with pytest.raises(ProblemError, match="squared norm"):
        Guide(np.ones(2), square=-1.0)
    with pytest.raises(ProblemError, match=r"alpha\[1\]"):
        Weights(np.array([1.0, np.inf]))


def test_rounding_is_forgiven_and_the_gram_made_symmetric():
    problem = Problem(np.array([[1.0, 0.5 + 1e-7], [0.5, 1.0]], dtype=np.float32), np.ones(2))
    assert problem.gram[0, 1] == problem.gram[1, 0]
    assert problem.gram.dtype == np.float64


def test_a_problem_cannot_be_changed_and_does_not_follow_its_input():
    gram = GRAM.copy()
    problem = Problem(gram, np.ones(2))
    gram[0, 0] = 7.0
    assert problem.gram[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        problem.gram[0, 0] = 2.0
    with pytest.raises(AttributeError):
        problem.losses = np.zeros(2)  # type: ignore[misc]


def test_losses_are_raised_to_a_small_positive_number():
    assert Problem(GRAM, np.array([-3.0, 0.0])).losses.tolist() == [1e-8, 1e-8]


def test_a_missing_guide_is_named_with_its_scheme():
    with pytest.raises(GuideMissingError, match="'paretoda' needs a guide"):
        Problem(GRAM, np.ones(2)).need_guide("paretoda")


def test_a_gradient_whose_square_underflows_is_possible():
    tiny, long = 1e-170, 1e10
    rows = np.array([[tiny, 0.0], [long, long]])
    gram = rows @ rows.T
    assert gram[0, 0] == 0 < gram[0, 1]
    assert np.isfinite(Problem(gram, np.ones(2), Guide(rows @ rows[1], gram[1, 1], 1.0)).gram).all()
    with pytest.raises(ProblemError, match="larger than the product of the norms"):
        Problem(np.array([[0.0, 1e-100], [1e-100, 1.0]]), np.ones(2))
