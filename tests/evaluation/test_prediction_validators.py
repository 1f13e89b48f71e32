"""Validators that read the target's predictions alone: closed forms, bounds, and memory."""

import math

import pytest
import torch
from evaluation.snapshots import clusters, collapsed, noise
from hypothesis import given
from hypothesis import strategies as st

from paretoda.evaluation.validators import BNM, IM, SND, CorrC, Entropy, SourceRisk, snd
from paretoda.evaluation.validators.dev import zero_one
from paretoda.evaluation.validators.information import (
    class_correlation,
    mean_entropy,
    mutual_information,
    nuclear_norm_per_sample,
)
from paretoda.evaluation.validators.snd import neighbourhood_density

SURE = 1e4


def one_hots(labels, classes):
    return torch.eye(classes)[torch.tensor(labels)]


@st.composite
def logits(draw):
    n, classes = draw(st.integers(1, 20)), draw(st.integers(2, 12))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    return draw(st.sampled_from([0.0, 0.1, 1.0, 10.0, 1e4])) * torch.randn(n, classes, generator=generator)


def test_entropy_of_one_hot_uniform_and_a_known_distribution():
    assert mean_entropy(SURE * torch.eye(5)) == 0
    assert mean_entropy(torch.zeros(3, 5)) == pytest.approx(math.log(5))
    assert mean_entropy(torch.tensor([[0.9, 0.1], [0.5, 0.5]]).log()) == pytest.approx((0.325083 + 0.693147) / 2)


def test_information_of_balanced_uniform_and_collapsed_predictions():
    assert mutual_information(SURE * torch.eye(7)) == pytest.approx(math.log(7))
    assert mutual_information(torch.zeros(4, 7)) == pytest.approx(0)
    assert mutual_information(SURE * one_hots([3] * 4, 7)) == pytest.approx(0)
    assert mutual_information(SURE * one_hots([0, 0, 0, 1], 2)) == pytest.approx(0.562335)


@given(logits())
def test_information_lies_between_zero_and_the_log_of_the_classes(z):
    assert -1e-9 <= mutual_information(z) <= math.log(min(z.shape)) + 1e-9
    assert -1e-9 <= mean_entropy(z) <= math.log(z.shape[1]) + 1e-9


def test_nuclear_norm_of_the_identity_is_one_and_of_uniform_predictions_the_least():
    assert nuclear_norm_per_sample(torch.eye(6)) == pytest.approx(1)
    assert nuclear_norm_per_sample(torch.full((12, 3), 1 / 3)) == pytest.approx(1 / 6)
    assert nuclear_norm_per_sample(one_hots([0, 1, 2] * 4, 3)) == pytest.approx(math.sqrt(3 / 12))


@given(logits())
def test_the_nuclear_norm_keeps_its_bounds(z):
    n, classes = z.shape
    assert (
        1 / math.sqrt(n * classes) - 1e-9
        <= nuclear_norm_per_sample(z.softmax(1))
        <= math.sqrt(min(n, classes) / n) + 1e-9
    )


def test_class_correlation_is_one_for_balanced_one_hots_and_least_for_uniform_and_collapsed():
    assert class_correlation(one_hots([0, 1, 2] * 4, 3)) == pytest.approx(1)
    assert class_correlation(torch.full((12, 4), 0.25)) == pytest.approx(1 / 2)
    assert class_correlation(one_hots([1] * 5, 4)) == pytest.approx(1 / 2)
    # C = [[1.25, .25], [.25, 1.25]]: 2.5 / (√2 √(2 · 1.25² + 2 · .25²))
    assert class_correlation(torch.tensor([[0.5, 0.5], [1, 0], [0, 1]])) == pytest.approx(0.980581)


@given(logits())
def test_class_correlation_keeps_its_bounds(z):
    assert 1 / math.sqrt(z.shape[1]) - 1e-9 <= class_correlation(z.softmax(1)) <= 1 + 1e-9


def test_density_of_two_clusters_of_three_is_log_two():
    assert neighbourhood_density(one_hots([0, 0, 0, 1, 1, 1], 2)) == pytest.approx(0.693147, abs=1e-6)


def test_density_of_three_known_points():
    p = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])  # of length 1: cosines .8, .6, .96
    rows = [[16, 12], [16, 19.2], [12, 19.2]]
    expected = sum(-(w * w.log()).sum() for w in (torch.tensor(r).double().softmax(0) for r in rows)) / 3
    assert neighbourhood_density(p) == pytest.approx(float(expected), rel=1e-6)
    assert neighbourhood_density(p / p.sum(1, keepdim=True)) == pytest.approx(float(expected), rel=1e-6)


def test_density_in_chunks_is_the_density_at_once(monkeypatch):
    p = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)).softmax(1)
    whole = neighbourhood_density(p)
    monkeypatch.setattr(snd, "_CHUNK", 120)
    assert neighbourhood_density(p) == pytest.approx(whole, rel=1e-12)


def test_density_alone_likes_collapse_and_indecision_and_the_discount_stops_that():
    good, bad, undecided = clusters(60, 5, 30.0), collapsed(60, 5, 30.0), noise(60, 5)
    published = SND(needed=0)
    assert published(bad) == pytest.approx(math.log(59))
    assert published(bad) > published(good)
    assert published(undecided) > published(good)
    assert SND()(bad) == pytest.approx(0, abs=1e-9)
    assert SND()(undecided) < 0.1 * SND()(good)
    assert SND()(good) == published(good) == pytest.approx(math.log(11), abs=1e-4)


def test_only_so_many_samples_are_compared():
    assert SND(samples=10)(clusters(60, 2, 30.0)) < math.log(9)


def test_source_risk_is_the_share_of_errors():
    assert zero_one(torch.tensor([[2.0, 1], [0, 1], [3, 0], [0, 1]]), torch.tensor([0, 0, 0, 1])).mean() == 0.25
    assert SourceRisk()(clusters(50, 3, 5.0)) == 0
    assert -1 <= SourceRisk()(noise(500, 4)) < -0.5


def test_the_classes_are_the_functions_of_the_targets_logits():
    snapshot = clusters(40, 4, 3.0)
    z = snapshot.target.logits
    assert Entropy()(snapshot) == -mean_entropy(z) < 0
    assert IM()(snapshot) == mutual_information(z)
    assert BNM()(snapshot) == nuclear_norm_per_sample(z.double().softmax(1))
    assert CorrC()(snapshot) == class_correlation(z.double().softmax(1))
