"""EnsV: agreement with the mean of all candidates, counted by hand."""

import math

import pytest
import torch

from paretoda.evaluation.joint_validators import ensv
from paretoda.evaluation.model_selection import Ensemble, choose, split_rule


def test_the_mean_of_all_decides_and_agreement_is_counted():
    one = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.5, 0.5]])
    two = torch.tensor([[0.6, 0.4], [0.1, 0.9], [0.4, 0.6], [0.7, 0.3]])
    # Sums 1.5, 0.7, 0.6 and 1.2 for class 0, of 2: classes 0, 1, 1, 0.
    assert ensv([one, two]) == [0.75, 1.0]
    assert ensv([two, one]) == [1.0, 0.75]
    assert ensv([one]) == [1.0]


def test_a_candidate_that_diverged_has_no_vote_and_no_score():
    good, bad = torch.eye(3), torch.full((3, 3), math.nan)
    scores = ensv([bad, good, good.flip(0), good])
    assert math.isnan(scores[0])
    assert scores[1:] == pytest.approx([1, 1 / 3, 1])
    assert all(map(math.isnan, ensv([bad, bad])))
    assert choose({"ensv": scores}, "ensv").index == 3


def test_predictions_of_different_samples_are_refused():
    with pytest.raises(ValueError, match="the same samples"):
        ensv([torch.eye(3), torch.eye(4)])


def test_it_takes_part_in_the_mean_rank():
    scores = {"ensv": ensv([torch.eye(2), torch.eye(2), torch.eye(2).flip(0)]), "im": [0.1, 0.5, 0.9]}
    assert Ensemble(("ensv", "im"))(scores).tolist() == [1.75, 2.25, 2.0]
    assert choose(scores, "ensv+im").index == 1
    assert "By the mean rank of ensv and im: candidate 1" in choose(scores, "ensv+im").sentence


def test_a_rule_is_split_into_its_validators():
    assert split_rule("ensemble") == ("im", "mixval", "mano")
    assert split_rule("last") == ()
    assert split_rule("snd") == ("snd",)
    assert split_rule("ensv+im+class-ami") == ("ensv", "im", "class-ami")
