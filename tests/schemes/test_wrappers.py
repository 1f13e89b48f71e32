"""Held and averaged weights."""

import numpy as np
import pytest
from generators import draw, problem_of
from hypothesis import given
from hypothesis import strategies as st

from paretoda.core.certificates import keeps_guarantee
from paretoda.core.problem import Guide, Move, Problem
from paretoda.schemes import DWA, MGDA, PMTL, Averaged, Calibrated, Every, Linear, ParetoDA, ParetoPaper


def problems(count, family="generic", m=3):
    return [draw(family, m, seed).problem for seed in range(count)]


def test_every_asks_at_each_kth_step_and_holds_in_between():
    scheme, seen = Every(MGDA(), every=3), []
    for problem in problems(7):
        weights = scheme.ahead(problem.losses)
        seen.append("asked" if weights is None else weights.move)
        if weights is None:
            fresh = scheme(problem).alpha.tolist()
        else:
            assert weights.alpha.tolist() == fresh
    assert seen == ["asked", Move.HELD, Move.HELD, "asked", Move.HELD, Move.HELD, "asked"]


def test_every_goes_on_where_it_was_saved():
    scheme = Every(PMTL(reach=2), every=2)
    sequence = problems(9)

    def run(which, part):
        return [(which.ahead(p.losses) or which(p)).alpha.tolist() for p in part]

    run(scheme, sequence[:3])
    other = Every(PMTL(reach=2), every=2)
    other.load_state_dict(scheme.state_dict())
    assert run(scheme, sequence[3:]) == run(other, sequence[3:])


def test_every_refuses_what_makes_no_sense():
    with pytest.raises(ValueError, match="at least 1"):
        Every(MGDA(), every=0)
    with pytest.raises(ValueError, match="nothing to save"):
        Every(Linear())
    scheme = Every(MGDA())
    scheme(problems(1)[0])
    with pytest.raises(ValueError, match="3 weights are held, but there are 2"):
        scheme.ahead(np.ones(2))


def test_the_average_of_equal_problems_is_that_problem():
    problem = problems(1)[0]
    scheme = Averaged(ParetoPaper(), decay=0.9)
    for _ in range(5):
        assert scheme(problem).alpha == pytest.approx(ParetoPaper()(problem).alpha)


def test_the_first_average_of_two_has_equal_shares_without_decay_towards_zero():
    class Spy:
        guided = False

        def __call__(self, problem):
            self.gram = problem.gram
            return MGDA()(problem)

    spy = Spy()
    scheme = Averaged(spy, decay=1 - 1e-9)
    scheme(Problem(np.diag([1.0, 2.0]), np.ones(2)))
    scheme(Problem(np.diag([3.0, 4.0]), np.ones(2)))
    assert spy.gram == pytest.approx(np.diag([2.0, 3.0]))


def test_an_average_yields_where_it_would_break_the_promise():
    scheme, broken = Averaged(ParetoPaper(), decay=0.99), 0
    for problem in problems(300, "conflicting"):
        alpha = scheme(problem).alpha
        assert keeps_guarantee(problem, alpha)
        broken += not np.allclose(alpha, ParetoPaper()(problem).alpha)
    assert broken > 20, "the average must matter, or this tests nothing"


def test_weights_of_a_single_batch_are_not_held():
    """They were: a source loss that was 0 in one batch had weight 2,700 in the next four, and the network was lost."""
    calm = Problem(np.diag([1.0, 1.0]), np.ones(2), Guide(np.ones(2), 1.0))
    tiny = 1e-4  # a batch in which the first loss is solved, and opposes what is left of the second
    batch = Problem(
        [[tiny**2, -0.5 * tiny], [-0.5 * tiny, 1.0]], np.array([1e-8, 1.0]), Guide(np.array([-tiny, -1.0]), 1.0)
    )
    scheme = Every(Averaged(ParetoDA()), every=2)
    for problem in (calm, batch):
        weights = scheme(problem)
    assert keeps_guarantee(batch, weights.alpha)
    assert weights.alpha[0] > 1000
    assert scheme.ahead(np.ones(2)).alpha.max() < 1
    calibrated = Every(Calibrated(Averaged(ParetoDA())), every=2)
    for problem in (calm, batch):
        calibrated(problem)
    assert calibrated.ahead(np.ones(2)).alpha.max() < 10


@given(st.integers(0, 10**6), st.sampled_from(["generic", "conflicting", "wild"]))
def test_held_weights_are_at_most_ten_times_the_wanted_ones(seed, family):
    problem = draw(family, 3, seed).problem
    scheme = ParetoDA()
    held = Every(scheme, every=2)
    now = held(problem)
    assert np.array_equal(now.alpha, scheme(problem).alpha)
    if now.move is not Move.SAFETY_NET:
        assert (held.ahead(np.ones(3)).alpha <= 10 * scheme.wanted(problem) + 1e-12).all()


def test_averages_go_on_where_they_were_saved_and_refuse_a_change_of_size():
    scheme, sequence = Averaged(ParetoPaper()), problems(8)
    for problem in sequence[:4]:
        scheme(problem)
    other = Averaged(ParetoPaper())
    other.load_state_dict(scheme.state_dict())
    assert [scheme(p).alpha.tolist() for p in sequence[4:]] == [other(p).alpha.tolist() for p in sequence[4:]]
    with pytest.raises(ValueError, match="gram had shape"):
        scheme(problem_of(np.eye(2), np.ones(2), np.ones(2)))


def test_averaged_refuses_what_makes_no_sense():
    with pytest.raises(ValueError, match="decay must lie in"):
        Averaged(MGDA(), decay=1.0)
    with pytest.raises(ValueError, match="without memory"):
        Averaged(DWA())


def test_an_unmeasured_guide_loss_stays_unmeasured():
    scheme = Averaged(ParetoPaper())
    for problem in problems(3):
        scheme(Problem(problem.gram, problem.losses, Guide(problem.guide.dots)))
    assert scheme.state_dict()["loss"] == float("inf")
