"""The transfer score's three parts on inputs where each is known."""

import math

import numpy as np
import pytest
import torch
from evaluation.snapshots import clusters
from torch import nn

from paretoda.evaluation.validators import TransferScore
from paretoda.evaluation.validators.information import mutual_information
from paretoda.evaluation.validators.transfer_score import hopkins, project_on_principal_axes, unevenness
from paretoda.types import Model


@pytest.mark.parametrize("classes", [2, 3, 10, 65])
def test_the_vertices_of_a_simplex_are_even(classes):
    simplex = torch.eye(classes) - 1 / classes
    assert unevenness(simplex) == pytest.approx(0, abs=1e-6)
    assert unevenness(simplex * torch.arange(1.0, classes + 1)[:, None]) == pytest.approx(0, abs=1e-6)


def test_unevenness_of_orthogonal_and_of_equal_rows():
    ideal = math.acos(-1 / 3)
    assert unevenness(torch.eye(4)) == pytest.approx((math.pi / 2 - ideal) ** 2)
    assert unevenness(torch.ones(4, 2)) == pytest.approx(ideal**2, rel=1e-5)


def test_hopkins_is_a_half_for_uniform_points_and_near_one_for_clusters():
    rng = np.random.default_rng(7)
    assert hopkins(rng.uniform(size=(2000, 2))) == pytest.approx(0.5, abs=0.03)
    assert hopkins(rng.uniform(size=(2000, 3)), seed=4) == pytest.approx(0.5, abs=0.05)
    corners = rng.integers(0, 2, size=(300, 2)) + 1e-3 * rng.normal(size=(300, 2))
    assert hopkins(corners) > 0.98


def test_hopkins_of_a_regular_grid_is_below_a_half():
    grid = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), axis=-1).reshape(-1, 2)
    # w = 1; u has mean (√2 + log(1 + √2)) / 6 = .3826 for points uniform in unit cells
    assert hopkins(grid) == pytest.approx(0.3826 / 1.3826, abs=0.01)


@pytest.mark.parametrize("points", [np.zeros((1, 3)), np.zeros((5, 3)), np.zeros((0, 3))])
def test_hopkins_of_no_spread_is_a_half(points):
    assert hopkins(points) == 0.5


def test_principal_axes_keep_the_distances_of_points_in_a_plane():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 50))
    small = project_on_principal_axes(flat, 2)
    assert small.shape == (30, 2)
    assert np.linalg.norm(small[3] - small[7]) == pytest.approx(np.linalg.norm(flat[3] - flat[7]))
    assert project_on_principal_axes(flat[:1], 8).shape == (1, 1)


def test_the_score_is_the_sum_of_its_parts():
    snapshot = clusters(50, 4, 3.0)
    features = snapshot.target.features
    order = torch.randperm(50, generator=torch.Generator().manual_seed(0))
    cluster = hopkins(project_on_principal_axes(features[order].double().numpy(), 8))
    information = mutual_information(snapshot.target.logits) / math.log(4)
    assert TransferScore()(snapshot) == pytest.approx(cluster + information, abs=1e-6)
    snapshot.model.head.weight.data = torch.eye(4)
    assert TransferScore()(snapshot) == pytest.approx(cluster + information - unevenness(torch.eye(4)))


def test_the_last_linear_layer_of_a_deeper_head_counts():
    snapshot = clusters(50, 4, 3.0)
    flat = TransferScore()(snapshot)
    snapshot.model.head = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), snapshot.model.head)
    assert TransferScore()(snapshot) == flat


def test_a_head_without_linear_layer_is_refused_in_a_sentence():
    snapshot = clusters(5, 2, 1.0)
    object.__setattr__(snapshot, "model", Model(nn.Identity(), nn.Identity()))
    with pytest.raises(ValueError, match=r"head's last nn\.Linear"):
        TransferScore()(snapshot)
