"""RSD against scipy's angles between subspaces, its invariances, and gradients that are finite everywhere."""

import numpy as np
import pytest
import torch
from scipy.linalg import subspace_angles

from paretoda.objectives.alignment.rsd import Rsd, subspace_basis, subspace_distance


def rows(seed, count=4, width=12):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(count, width)))


def published(source, target):
    """Sines and mismatch as the published code computes them, with NumPy's SVD."""
    ours, theirs = (np.linalg.svd(part.numpy().T, full_matrices=False)[0] for part in (source, target))
    left, cosines, right = np.linalg.svd(ours.T @ theirs)
    return np.sqrt(1 - cosines**2).sum(), np.linalg.norm(np.abs(left) - np.abs(right.T))


@pytest.mark.parametrize("seed", range(10))
def test_the_sines_are_those_of_the_angles_between_the_subspaces(seed):
    source, target = rows(seed), rows(seed + 100)
    wanted = np.sin(subspace_angles(source.numpy().T, target.numpy().T)).sum()
    assert subspace_distance(source, target, 0.0).item() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_both_parts_are_those_of_the_published_code(seed):
    source, target = rows(seed), rows(seed + 100)
    sines, mismatch = published(source, target)
    assert subspace_distance(source, target, 0.5).item() == pytest.approx(sines + 0.5 * mismatch, abs=1e-5)


def test_it_ignores_the_size_of_the_features_and_turns_of_the_space():
    source, target = rows(0), rows(1)
    turn = torch.linalg.qr(rows(2, 12))[0]
    value = subspace_distance(source, target, 0.3)
    torch.testing.assert_close(subspace_distance(1000 * source, 0.01 * target, 0.3), value)
    torch.testing.assert_close(subspace_distance(source @ turn, target @ turn, 0.3), value)
    torch.testing.assert_close(subspace_distance(target, source, 0.3), value)


def test_a_batch_is_at_no_distance_from_itself_and_at_right_angles_from_what_it_does_not_reach():
    source = rows(0)
    assert subspace_distance(source, source, 1.0).item() == pytest.approx(0, abs=1e-6)
    basis = torch.eye(12, dtype=torch.float64)
    assert subspace_distance(basis[:3], basis[3:6], 0.0).item() == pytest.approx(3, abs=1e-4)


def test_the_gradient_is_that_of_finite_differences():
    source, target = rows(0).requires_grad_(), rows(1).requires_grad_()
    assert torch.autograd.gradcheck(lambda one, other: subspace_distance(one, other, 0.5), (source, target), atol=1e-4)


def test_the_distance_falls_along_the_gradient_until_the_subspaces_meet():
    source, target = rows(0), rows(1).requires_grad_()
    optimiser = torch.optim.Adam([target], lr=0.05)
    first = subspace_distance(source, target, 0.0).item()
    for _ in range(300):
        optimiser.zero_grad()
        loss = subspace_distance(source, target, 0.0)
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.05 * first


@pytest.mark.parametrize(
    "source",
    [torch.zeros(4, 12), torch.ones(4, 12), torch.eye(12)[:4], rows(0).float()[[0, 0, 1, 1]], 1e20 * torch.eye(12)[:4]],
    ids=["zero", "equal rows", "equal singular values", "duplicates", "huge"],
)
def test_degenerate_batches_have_finite_values_and_gradients(source):
    source = source.clone().requires_grad_()
    for target in (rows(1).float(), source.detach()):
        loss = Rsd(12, 1)(*(_domain(part) for part in (source, target)))
        (gradient,) = torch.autograd.grad(loss, source)
        assert loss.isfinite()
        assert gradient.isfinite().all()


def test_directions_without_spread_and_beyond_half_of_the_width_are_left_out():
    assert subspace_basis(rows(0)[[0, 0, 1]], most=6).shape == (12, 2)
    assert subspace_basis(rows(0, count=12), most=6).shape == (12, 6)
    assert subspace_distance(rows(0, count=30), rows(1, count=30), 0.0) > 1  # both span everything


def test_negative_factors_are_refused():
    with pytest.raises(ValueError, match="0 or more"):
        Rsd(4, 1, strength=-1.0)


def _domain(features):
    from paretoda.types import Source

    return Source(
        features, torch.zeros(len(features), 1), torch.arange(len(features)), labels=torch.zeros(len(features))
    )
