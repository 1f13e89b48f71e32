import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretoda.errors import DataError
from paretoda.objectives.parts.selective_pseudo_labels import (
    classify_in_projection,
    find_clusters,
    find_components,
    fit_projection,
    halve_components,
    label_selectively,
    normalise,
    select_trusted,
)


def blobs(labels, d=6, shift=0.0, noise=0.1, seed=0):
    """Samples near one axis for each class, moved in every direction."""
    rng = np.random.default_rng(seed)
    labels = np.asarray(labels)
    return np.eye(max(d, labels.max() + 1))[labels, :d] + noise * rng.normal(size=(len(labels), d)) + shift


@given(st.integers(1, 12), st.integers(1, 6), st.integers(1, 4), st.integers(0, 99))
def test_the_projection_solves_the_generalised_eigenproblem_of_the_paper(n, d, classes, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), rng.integers(0, classes, n)
    same = (y[:, None] == y).astype(float)
    degrees = np.diag(same.sum(1))
    left, right = x.T @ degrees @ x, x.T @ (degrees - same) @ x + np.eye(d)
    values, vectors = fit_projection(x, y, width=4)
    assert vectors.shape == (d, min(4, d))
    np.testing.assert_allclose(left @ vectors, right @ vectors * values, atol=1e-8 * max(1, np.abs(left).max()))
    assert (np.diff(values) <= 1e-9 * max(1, values[0])).all()
    every = np.sort(np.linalg.eigvals(np.linalg.solve(right, left)).real)[::-1]
    np.testing.assert_allclose(values, every[: len(values)], atol=1e-7 * max(1, every[0]))


def test_the_first_direction_separates_two_classes_and_not_their_noise():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    x = np.stack([2.0 * y - 1 + 0.1 * rng.normal(size=200), 5 * rng.normal(size=200)], axis=1)
    first = fit_projection(x, y, width=1)[1][:, 0]
    assert abs(first[0]) > 100 * abs(first[1])


def test_separable_blobs_that_are_shifted_are_all_found():
    rng = np.random.default_rng(1)
    y = np.arange(80) % 2
    source = np.stack([4.0 * y, rng.normal(size=80)], axis=1)
    target = np.stack([4.0 * y + 1.5, rng.normal(size=80)], axis=1)
    # Norms carry no information for this method: a third axis makes the position an angle.
    wide = [np.concatenate([x, np.full((80, 1), 3.0)], axis=1) for x in (source, target)]
    found = label_selectively(wide[0], y, wide[1], 2)
    np.testing.assert_array_equal(found.argmax(axis=1), y)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_many_classes_with_few_samples_are_found_behind_a_shift():
    y = np.arange(40) % 8
    found = label_selectively(blobs(y, d=20), y, blobs(y[::-1], d=20, shift=0.05, seed=1), 8)
    np.testing.assert_array_equal(found.argmax(axis=1), y[::-1])


def test_a_class_without_source_samples_has_probability_zero():
    y = np.where(np.arange(30) % 2 == 0, 1, 4)
    found = label_selectively(blobs(y), y, blobs(y, seed=1), 6)
    assert (found[:, [0, 2, 3, 5]] == 0).all()
    np.testing.assert_array_equal(found.argmax(axis=1), y)


def test_a_class_that_the_target_lacks_takes_none_of_its_samples():
    y, there = np.arange(30) % 3, np.arange(30) % 2
    found = label_selectively(blobs(y), y, blobs(there, seed=1), 3)
    np.testing.assert_array_equal(found.argmax(axis=1), there)


@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (1, 5, 3), (2, 1, 300), (3, 2, 1), (5, 9, 2)])
def test_domains_of_every_size_and_width_give_distributions(n, m, d):
    rng = np.random.default_rng(2)
    found = label_selectively(rng.normal(size=(n, d)), np.arange(n) % 4, rng.normal(size=(m, d)), 10)
    assert found.shape == (m, 10)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found[:, min(n, 4) :] == 0).all()


def test_equal_samples_give_equal_distributions():
    found = label_selectively(np.ones((4, 3)), np.arange(4) % 2, np.ones((3, 3)), 2)
    np.testing.assert_allclose(found, 0.5)


def test_empty_domains_and_a_single_round_are_refused():
    for source, target, rounds in ((0, 3, 11), (3, 0, 11), (3, 3, 1)):
        with pytest.raises(DataError, match="samples of both domains, and 2 rounds or more"):
            label_selectively(np.ones((source, 2)), np.arange(source), np.ones((target, 2)), 3, rounds=rounds)


def test_images_are_read_as_rows():
    y = np.arange(24) % 2
    images = blobs(y, d=4).reshape(24, 2, 2)
    np.testing.assert_array_equal(label_selectively(images, y, images, 2).argmax(axis=1), y)


def test_principal_components_keep_the_angles_between_centred_rows():
    rng = np.random.default_rng(3)
    source, target = rng.normal(size=(5, 30)), rng.normal(size=(4, 30))
    both = np.concatenate([normalise(source), normalise(target)])
    expected = normalise(both - both.mean(axis=0))
    found = normalise(find_components(source, target, 100))
    assert found.shape == (9, 9)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-12)
    assert find_components(source, target, 3).shape == (9, 3)


def test_several_numbers_of_components_give_the_mean_of_what_each_gives():
    y = np.arange(40) % 4
    given = blobs(y, d=12, noise=0.5), y, blobs(y, d=12, noise=0.5, shift=0.2, seed=1), 5
    alone = [label_selectively(*given, components=(count,)) for count in (12, 6, 4)]
    together = label_selectively(*given, components=(12, 6, 4))
    np.testing.assert_allclose(together, np.mean(alone, axis=0))
    assert not np.allclose(alone[0], alone[1])


@given(st.integers(1, 300), st.integers(2, 100))
def test_every_view_has_a_component_for_each_class_where_there_are_so_many(count, classes):
    views = halve_components(count, classes)
    assert views[0] == count
    assert all(min(count, classes) <= view <= count for view in views)


def test_the_probability_of_a_class_is_the_larger_of_means_and_clusters():
    source, target = np.eye(2), np.array([[1.0, 0.0], [0.6, 0.8]])
    found = classify_in_projection(source, target, np.arange(2))
    # Each sample is the only one of its cluster, which is at distance 0.
    gap, far = np.linalg.norm([0.4, 0.8]), np.sqrt(2)
    near = np.linalg.norm([0.6, 0.2])
    by_means = [
        [1 / (1 + np.exp(-far)), 1 / (1 + np.exp(far))],
        [1 / (1 + np.exp(gap - near)), 1 / (1 + np.exp(near - gap))],
    ]
    by_clusters = [[1 / (1 + np.exp(-gap)), 1 / (1 + np.exp(gap))], [1 / (1 + np.exp(gap)), 1 / (1 + np.exp(-gap))]]
    np.testing.assert_allclose(found, np.maximum(by_means, by_clusters))


def test_clusters_follow_their_samples_and_stay_without_any():
    rows = normalise(np.array([[1.0, 0.2], [1.0, 0.3], [1.0, -0.2]]))
    start = np.array([[1.0, 0.0], [-1.0, 0.0]])
    found = find_clusters(rows, start)
    np.testing.assert_allclose(found[0], normalise(rows.mean(axis=0, keepdims=True))[0])
    np.testing.assert_allclose(found[1], start[1])


def test_trust_is_given_to_the_most_confident_of_each_class():
    confidence = np.array([0.9, 0.5, 0.8, 0.7, 0.6, 0.4])
    labels = np.array([0, 0, 0, 0, 1, 1])
    assert select_trusted(confidence, labels, 0.0).sum() == 0
    assert select_trusted(confidence, labels, 0.5).tolist() == [True, False, True, False, True, False]
    assert select_trusted(confidence, labels, 1.0).all()
    assert select_trusted(np.ones(10), np.zeros(10, dtype=int), 0.3).sum() == 3
