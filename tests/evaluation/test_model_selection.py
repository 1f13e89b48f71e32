"""The choice among checkpoints, and the warning: by ranks, in plain words, and never on a diverged candidate."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from paretoda.evaluation.model_selection import COMPARABLE, ENSEMBLE, Ensemble, choose, negative_transfer_warning

SCORES = {"im": [0.1, 0.5, 0.9], "mixval": [0.2, 0.8, 0.7], "mano": [-0.1, -0.2, -0.9]}
STEPS = ["step 100", "step 200", "step 300"]


def test_one_validator_chooses_its_best_and_the_others_are_heard():
    choice = choose(SCORES, "im", STEPS)
    assert choice.index == 2
    assert choice.votes == {"im": 2, "mixval": 1, "mano": 0}
    assert choice.sentence == (
        "By im: step 300; the validators disagree: mixval would take step 200 and mano would take step 100."
    )


def test_the_ensemble_takes_the_best_mean_rank():
    assert Ensemble(ENSEMBLE)(SCORES).tolist() == pytest.approx([5 / 3, 7 / 3, 2])
    choice = choose(SCORES, "ensemble", STEPS)
    assert choice.index == 1
    assert choice.sentence == (
        "By the mean rank of im, mixval and mano: step 200; "
        "the validators disagree: im would take step 300 and mano would take step 100."
    )
    assert choose(SCORES).index == 1
    assert choose(SCORES, "im+mano").index == 2  # all tie: the last


def test_where_all_agree_the_sentence_says_so():
    scores = {"im": [0.1, 0.9], "snd": [3.0, 4.0]}
    assert choose(scores, "snd").sentence == "By snd: candidate 1, and no validator disagrees."
    assert choose({"im": [1.0]}, "im").sentence == "By im: candidate 0."


def test_those_who_agree_with_each_other_are_named_together():
    scores = {"im": [0.0, 1.0], "bnm": [1.0, 0.0], "snd": [1.0, 0.0]}
    assert "disagree: bnm and snd would take candidate 0." in choose(scores, "im").sentence


def test_among_equals_the_last_is_taken_and_a_tie_is_no_disagreement():
    choice = choose({"im": [1.0, 2.0, 2.0], "source-risk": [0.0, 0.0, 0.0]}, "im")
    assert choice.index == 2
    assert choice.votes == {"im": 2, "source-risk": 2}
    assert choose({"im": [2.0, 1.0], "source-risk": [0.0, 0.0]}, "im").votes == {"im": 0, "source-risk": 0}
    assert choose({"im": [1.0, 2.0, 2.0], "dev": [0.0, 0.0, -1.0]}, "im+dev").index == 1


def test_a_diverged_candidate_is_never_chosen():
    assert choose({"im": [0.1, math.nan]}, "im").index == 0
    assert choose({"im": [0.1, math.nan], "dev": [-0.5, math.nan]}, "im+dev").votes == {"im": 0, "dev": 0}


@pytest.mark.parametrize("scores", [{}, {"im": []}, {"im": [1.0], "dev": [1.0, 2.0]}])
def test_scores_of_different_candidates_are_refused(scores):
    with pytest.raises(ValueError, match="the same candidates"):
        choose(scores, "im")


def test_missing_scores_are_named():
    with pytest.raises(ValueError, match="no scores of mixval, mano; there are those of im"):
        choose({"im": [1.0]}, "ensemble")


@given(st.lists(st.tuples(*[st.floats(-5, 5)] * 3), min_size=1, max_size=8))
def test_the_choice_does_not_depend_on_the_scales_of_the_scores(rows):
    scores = dict(zip(ENSEMBLE, zip(*rows, strict=True), strict=True))
    scaled = {name: [math.atan(v) * 10**i for v in values] for i, (name, values) in enumerate(scores.items())}
    same_order = all(
        (a < b) == (math.atan(a) < math.atan(b)) for values in scores.values() for a in values for b in values
    )
    if same_order:
        assert choose(scores).index == choose(scaled).index


def test_a_fall_below_source_only_is_said_in_one_sentence():
    text = negative_transfer_warning({"im": 1.0, "mixval": 0.9}, {"im": 1.5, "mixval": 0.8})
    assert text == (
        "Adaptation may have made the model worse on the target: 1 of 2 label-free validators score it below the "
        "source-only model (im 1.000 instead of 1.500); look at its predictions, or use the source-only model."
    )
    assert "has probably" in negative_transfer_warning({"im": 1.0}, {"im": 1.5})


def test_a_rise_an_equal_score_and_a_hair_are_no_fall():
    for value in (1.0, 2.0, 0.995):
        assert negative_transfer_warning({"im": value}, {"im": 1.0}) is None
    assert negative_transfer_warning({"im": 0.98}, {"im": 1.0}) is not None
    assert negative_transfer_warning({"im": math.nan}, {"im": 1.0}) is not None


def test_scores_that_cannot_be_compared_between_models_say_nothing():
    for name in ("dev", "transfer-score", "entropy", "snd", "source-risk"):
        assert name not in COMPARABLE
        assert negative_transfer_warning({name: -5.0}, {name: 5.0}) is None


@given(st.lists(st.integers(0, 4).map(float) | st.just(float("nan")), min_size=1, max_size=12))
def test_ranks_are_those_of_scipy(values):
    finite = [-math.inf if math.isnan(value) else value for value in values]
    assert Ensemble(("im",))({"im": values}).tolist() == rankdata(finite, method="average").tolist()
