import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from paretoda.objectives.parts.transport import entropic_gromov_wasserstein, pair_costs, sinkhorn


def graph(n, seed):
    points = torch.randn(n, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return torch.cdist(points, points)


def misfit(one, other, coupling):
    """Σ (one_ik - other_jl)² T_ij T_kl, what a Gromov-Wasserstein coupling makes small."""
    return (pair_costs(one, other, coupling) * coupling).sum()


def even(n):
    return torch.full((n,), 1 / n, dtype=torch.float64)


@pytest.mark.parametrize(("cost", "entropy"), [(1.0, 0.5), (3.0, 0.7), (0.0, 1.0)])
def test_two_by_two_has_a_closed_form(cost, entropy):
    costs = torch.tensor([[0.0, cost], [cost, 0.0]], dtype=torch.float64)
    stay = 0.5 / (1 + math.exp(-cost / entropy))
    expected = torch.tensor([[stay, 0.5 - stay], [0.5 - stay, stay]], dtype=torch.float64)
    torch.testing.assert_close(sinkhorn(costs, even(2), even(2), entropy), expected)


def test_equal_costs_give_the_product_of_the_masses():
    rows, columns = torch.tensor([0.2, 0.8]), torch.tensor([0.5, 0.3, 0.2])
    coupling = sinkhorn(torch.full((2, 3), 7.0), rows, columns, 0.01)
    torch.testing.assert_close(coupling, rows.unsqueeze(1) * columns)


@given(st.integers(0, 500), st.integers(1, 6), st.integers(1, 6))
def test_the_sums_are_the_masses(seed, n, m):
    generator = torch.Generator().manual_seed(seed)
    cost = torch.rand(n, m, dtype=torch.float64, generator=generator)
    rows, columns = (torch.rand(k, dtype=torch.float64, generator=generator) + 0.1 for k in (n, m))
    rows, columns = rows / rows.sum(), columns / columns.sum()
    coupling = sinkhorn(cost, rows, columns, 0.5, iterations=200)
    torch.testing.assert_close(coupling.sum(0), columns)
    torch.testing.assert_close(coupling.sum(1), rows)


def test_with_little_entropy_it_is_the_best_assignment_and_nothing_underflows():
    cost = torch.rand(6, 6, generator=torch.Generator().manual_seed(3))
    coupling = sinkhorn(cost, even(6).float(), even(6).float(), 1e-3, iterations=3000)
    rows, columns = linear_sum_assignment(cost.numpy())
    assert coupling.isfinite().all()
    assert (coupling.argmax(1).numpy() == columns).all()
    assert (coupling * cost).sum().item() == pytest.approx(cost.numpy()[rows, columns].sum() / 6, abs=1e-3)


def test_the_scaling_is_by_the_entropy_and_of_the_right_sign():
    """The coupling is the only one of the form u_i v_j exp(-cost / entropy): log cross-ratios tell."""
    cost = torch.rand(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    log = sinkhorn(cost, even(3), even(3), 0.3).log()
    ratio = log[0, 0] + log[1, 1] - log[0, 1] - log[1, 0]
    expected = -(cost[0, 0] + cost[1, 1] - cost[0, 1] - cost[1, 0]) / 0.3
    assert ratio.item() == pytest.approx(expected.item())


def test_pair_costs_are_the_sums_that_define_them():
    one, other = graph(3, 0), graph(4, 1)
    coupling = torch.rand(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    differences = (one[:, None, :, None] - other[None, :, None, :]).square()
    expected = torch.einsum("ijkl,kl->ij", differences, coupling)
    torch.testing.assert_close(pair_costs(one, other, coupling), expected)


@pytest.mark.parametrize("seed", range(5))
def test_a_renamed_graph_is_found_again(seed):
    one, order = graph(7, seed), torch.randperm(7, generator=torch.Generator().manual_seed(seed))
    other = one[order][:, order]
    masses = one.sum(1) / one.sum()
    coupling = entropic_gromov_wasserstein(one, other, masses, masses[order], entropy=0.005, rounds=30)
    assert (coupling.argmax(0) == order).all()
    blind = misfit(one, other, masses.unsqueeze(1) * masses[order])
    assert misfit(one, other, coupling) < 0.05 * blind


def test_the_coupling_is_better_than_none_and_keeps_the_masses():
    one, other = graph(6, 0), graph(8, 1)
    coupling = entropic_gromov_wasserstein(one, other, even(6), even(8), entropy=0.01, rounds=30)
    torch.testing.assert_close(coupling.sum(0), even(8))
    blind = torch.full((6, 8), 1 / 48, dtype=torch.float64)
    assert misfit(one, other, coupling) < 0.8 * misfit(one, other, blind)


def test_further_costs_keep_pairs_apart():
    one = graph(6, 0)
    strange = 1 - torch.eye(6, dtype=torch.float64).flip(0)
    coupling = entropic_gromov_wasserstein(one, one, even(6), even(6), extra=20 * strange)
    torch.testing.assert_close(coupling, torch.eye(6, dtype=torch.float64).flip(0) / 6, atol=1e-6, rtol=0)


def test_points_that_are_all_alike_are_coupled_evenly():
    flat = torch.ones(3, 3)
    coupling = entropic_gromov_wasserstein(flat, torch.ones(2, 2), torch.full((3,), 1 / 3), torch.full((2,), 0.5))
    torch.testing.assert_close(coupling, torch.full((3, 2), 1 / 6))


def test_python_optimal_transport_finds_the_same():
    ot = pytest.importorskip("ot", reason="POT is no dependency: an oracle where it is at hand")
    cost = torch.rand(5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ours = sinkhorn(cost, even(5), even(7), 0.2, iterations=1000)
    theirs = ot.sinkhorn(np.full(5, 1 / 5), np.full(7, 1 / 7), cost.numpy(), 0.2, stopThr=1e-12)
    np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-8)
