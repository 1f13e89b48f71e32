"""TorchJD's weightings on the same Gram matrices: an independent implementation of the same papers."""

import numpy as np
import pytest
import torch
from generators import draw

from paretoda.core.problem import Problem
from paretoda.schemes.aligned_mtl import AlignedMTL
from paretoda.schemes.cagrad import CAGrad
from paretoda.schemes.dwa import DWA
from paretoda.schemes.fairgrad import FairGrad
from paretoda.schemes.famo import FAMO
from paretoda.schemes.gradvac import GradVac
from paretoda.schemes.imtl_g import IMTLG
from paretoda.schemes.mgda import MGDA
from paretoda.schemes.nash_mtl import NashMTL
from paretoda.schemes.pcgrad import PCGrad
from paretoda.schemes.uncertainty import Uncertainty
from paretoda.schemes.upgrad import UPGrad

aggregation = pytest.importorskip("torchjd.aggregation")
scalarization = pytest.importorskip("torchjd.scalarization")
torch.set_num_threads(1)

CASES = [(family, m, seed) for family in ("generic", "conflicting") for m in (2, 3, 4) for seed in range(3)]
GENERAL = [(m, seed) for m in (2, 3, 4, 6) for seed in range(3)]
"""More parameters than objectives: the gradients are independent."""


def independent(m, seed):
    rows = np.random.default_rng((seed, m)).normal(size=(m, m + 4))
    return rows, Problem(rows @ rows.T, np.ones(m))


def steps(ours, theirs, rows):
    """Both steps' gradients, over the longer one's length."""
    ours, theirs = ours @ rows, theirs.numpy() @ rows
    scale = max(np.linalg.norm(ours), np.linalg.norm(theirs))
    return ours / scale, pytest.approx(theirs / scale, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_pcgrad_of_two(seed):
    case = draw("conflicting", 2, seed)
    ours, theirs = steps(
        2 * PCGrad()(case.problem).alpha, aggregation.PCGradWeighting()(torch.tensor(case.problem.gram)), case.rows
    )
    assert ours == theirs


@pytest.mark.parametrize(("family", "m", "seed"), CASES)
def test_upgrad_with_their_regularisation(family, m, seed):
    case = draw(family, m, seed)
    theirs = aggregation.UPGradWeighting()(torch.tensor(case.problem.gram))
    assert UPGrad(regularisation=1e-4)(case.problem).alpha == pytest.approx(theirs.numpy(), rel=1e-9)


@pytest.mark.parametrize(("m", "seed"), GENERAL)
def test_imtl_g(m, seed):
    rows, problem = independent(m, seed)
    ours, theirs = steps(IMTLG()(problem).alpha, aggregation.IMTLGWeighting()(torch.tensor(problem.gram)), rows)
    assert ours == theirs


@pytest.mark.parametrize("fairness", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("m", "seed"), GENERAL)
def test_fairgrad_up_to_the_accuracy_of_their_solver(m, seed, fairness):
    _, problem = independent(m, seed)
    theirs = aggregation.FairGradWeighting(alpha=fairness)(torch.tensor(problem.gram)).numpy()
    ours = m * FairGrad(fairness, normalise=False)(problem).alpha
    assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_gradvac_of_two_over_several_steps(seed):
    ours, theirs = GradVac(decay=0.5), aggregation.GradVacWeighting(beta=0.5)
    for number in range(5):
        problem = draw("generic", 2, 10 * seed + number).problem
        assert 2 * ours(problem).alpha == pytest.approx(theirs(torch.tensor(problem.gram)).numpy(), rel=1e-6)


@pytest.mark.parametrize("scale", ["min", "median", "rmse"])
@pytest.mark.parametrize(("m", "seed"), GENERAL)
def test_aligned_mtl(m, seed, scale):
    rows, problem = independent(m, seed)
    theirs = aggregation.AlignedMTLWeighting(scale_mode=scale)(torch.tensor(problem.gram))
    ours, theirs = steps(AlignedMTL(scale)(problem).alpha, theirs, rows)
    assert ours == theirs


@pytest.mark.parametrize("c", [0.1, 0.4, 0.8])
@pytest.mark.parametrize(("m", "seed"), GENERAL)
def test_cagrad_up_to_the_accuracy_of_their_solver(m, seed, c):
    rows, problem = independent(m, seed)
    theirs = aggregation.CAGradWeighting(c=c)(torch.tensor(problem.gram)).numpy() @ rows
    ours = CAGrad(c=c)(problem).alpha @ rows
    assert ours == pytest.approx(theirs, abs=1e-3 * np.linalg.norm(theirs))
    assert (rows @ ours).min() >= (rows @ theirs).min() - 1e-6 * np.linalg.norm(theirs)  # ours is never worse


@pytest.mark.filterwarnings("ignore::UserWarning:cvxpy", "ignore::UserWarning:torchjd")
@pytest.mark.parametrize(("m", "seed"), GENERAL)
def test_nash_mtl_where_their_solver_arrives(m, seed):
    rows, problem = independent(m, seed)
    theirs = aggregation.NashMTL(n_tasks=m).weighting(torch.tensor(rows)).numpy()
    product = theirs * (
        problem.gram @ theirs
    )  # one number for all objectives at a solution of Aa = 1/a, clipped or not
    if np.ptp(product) > 1e-3 * product.mean():
        pytest.skip("their successive linearisation stopped elsewhere")
    assert m * NashMTL()(problem).alpha == pytest.approx(theirs, rel=1e-3)


def weights_of(scalarizer, losses):
    values = torch.tensor(losses, dtype=torch.float32, requires_grad=True)
    scalarizer(values).backward()
    return values.grad.numpy()


def test_famo():
    ours, theirs, rng = FAMO(), scalarization.FAMO(3), np.random.default_rng(0)
    for _ in range(10):
        losses, after = rng.exponential(size=(2, 3)) + 0.1
        assert ours.ahead(losses).alpha == pytest.approx(weights_of(theirs, losses), rel=1e-4)
        ours.observe(after)
        theirs.update(torch.tensor(after, dtype=torch.float32))


def test_dwa():
    ours, theirs, rng = DWA(window=2), scalarization.DWA(), np.random.default_rng(0)
    for step in range(10):
        losses = rng.exponential(size=3) + 0.1
        assert 3 * ours.ahead(losses).alpha == pytest.approx(weights_of(theirs, losses), rel=1e-5)
        if step % 2:
            theirs.step()


def test_uncertainty_is_twice_theirs():
    ours, theirs, rng = Uncertainty(rate=0.1), scalarization.UW(3), np.random.default_rng(0)
    optimizer = torch.optim.Adam(theirs.parameters(), lr=0.1)
    for _ in range(10):
        losses = rng.exponential(size=3) + 0.1
        optimizer.zero_grad()
        assert 3 * ours.ahead(losses).alpha == pytest.approx(2 * weights_of(theirs, losses), rel=1e-4)
        optimizer.step()


@pytest.mark.parametrize(("m", "seed"), GENERAL)
def test_mgda_is_never_longer_than_theirs_and_their_direction_when_they_iterate_long(m, seed):
    """Theirs is Frank-Wolfe: it comes close from above, ours is exact."""
    rows, problem = independent(m, seed)
    ours = MGDA()(problem).alpha @ rows
    theirs = aggregation.MGDAWeighting(epsilon=1e-12, max_iters=20_000)(torch.tensor(problem.gram)).numpy() @ rows
    assert ours @ ours <= theirs @ theirs * (1 + 1e-12)
    assert ours == pytest.approx(theirs, abs=2e-2 * np.linalg.norm(rows, axis=1).max())
