"""ClassAMI: the adjusted information of scikit-learn, clusters that cannot be tighter, and no reward for collapse."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from evaluation.snapshots import clusters, collapsed, noise
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_mutual_info_score

from paretoda.evaluation.validators import ClassAMI
from paretoda.evaluation.validators.class_ami import adjusted_mutual_information, find_clusters

labels = st.integers(1, 6).flatmap(lambda most: st.lists(st.integers(0, most), min_size=40, max_size=40))


@given(labels, labels, st.integers(2, 40))
def test_adjusted_information_is_that_of_scikit_learn(first, second, n):
    first, second = first[:n], second[:n]
    found = adjusted_mutual_information(torch.tensor(first), torch.tensor(second))
    if min(len(set(first)), len(set(second))) < 2 or len(set(first)) == len(set(second)) == n:
        assert found == 0  # undefined; scikit-learn says 1
        return
    assert found == pytest.approx(adjusted_mutual_info_score(first, second), abs=1e-9)


def test_adjusted_information_of_large_partitions_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    first = rng.integers(31, size=3000)
    second = np.where(rng.random(3000) < 0.3, first, rng.integers(31, size=3000))
    found = adjusted_mutual_information(torch.from_numpy(first), torch.from_numpy(second))
    assert found == pytest.approx(adjusted_mutual_info_score(first, second), rel=1e-9)
    assert 0.02 < found < 0.5


def test_clusters_are_found_and_named_only_once():
    rows = clusters(120, 6, 1.0).target.features.double()
    found = find_clusters(rows, 6)
    assert adjusted_mutual_information(found, torch.arange(120) % 6) == 1
    assert find_clusters(torch.zeros(9, 3).double(), 4).tolist() == [0] * 9
    assert len(find_clusters(torch.eye(3).double(), 10).unique()) == 3


def test_clusters_without_a_structure_are_nearly_as_tight_as_those_of_scikit_learn():
    rows = torch.randn(500, 4, generator=torch.Generator().manual_seed(0)).double()

    def spread(found):
        return sum(float((own - own.mean(dim=0)).square().sum()) for own in (rows[found == k] for k in range(5)))

    theirs = KMeans(5, n_init=10, random_state=0).fit(rows.numpy()).inertia_
    assert spread(find_clusters(rows, 5)) <= 1.05 * theirs


def test_classes_that_are_clusters_score_one_and_collapse_scores_nothing():
    good = clusters(60, 5, 30.0)
    assert ClassAMI()(good) == 1
    assert ClassAMI()(collapsed(60, 5, 30.0)) == 0
    assert abs(ClassAMI()(noise(240, 5))) < 0.5
    other = noise(60, 5).target.logits
    assert abs(ClassAMI()(replace(good, target=replace(good.target, logits=other)))) < 0.15  # chance


def test_many_samples_and_many_features_are_drawn_and_projected():
    generator = torch.Generator().manual_seed(0)
    good = clusters(60, 5, 30.0)
    wide = good.target.features @ torch.randn(5, 40, generator=generator)
    snapshot = replace(good, target=replace(good.target, features=wide))
    assert ClassAMI(widest=16)(snapshot) == 1
    assert ClassAMI(samples=20)(snapshot) == 1


def test_scikit_learn_is_not_imported():
    code = "import sys, paretoda.evaluation.validators; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
