"""Our schemes in TorchJD's training step and theirs in ours: the same `.grad` whichever library takes it."""

import sys

import pytest
import torch
from generators import draw
from torch import nn

import paretoda
from paretoda.core.problem import Problem, reads_guide
from paretoda.gradients.torchjd import READ_LOSSES, from_torchjd, to_torchjd
from paretoda.schemes import EPO, MGDA, SCHEMES, Averaged, Every, Linear, ParetoDA, UPGrad

aggregation = pytest.importorskip("torchjd.aggregation")
autojac = pytest.importorskip("torchjd.autojac")
torch.set_num_threads(1)

ON_GRADIENTS = [name for name, make in SCHEMES.items() if not isinstance(make(), READ_LOSSES)]
THEIRS = {
    "upgrad": aggregation.UPGradWeighting(),
    "mgda": aggregation.MGDA(),
    "aligned-mtl": aggregation.AlignedMTL(),
    "cagrad": aggregation.CAGradWeighting(c=0.4),
    "averaged upgrad": aggregation.CRMOGMWeighting(aggregation.UPGradWeighting()),
    "mean": aggregation.MeanWeighting(),
}


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)).double()


def losses_of(net):
    """Three that conflict, and the guide's."""
    out = net(torch.randn(20, 5, generator=torch.Generator().manual_seed(0)).double())
    first, second = out[:, 0].square().mean(), (out[:, 1] - out[:, 0]).exp().mean()
    return [first, second, (out.sum(1) + 1).square().mean()], (out[:, 2] - 1).square().mean()


def step(net, gradient):
    """The gradient, and the parameters after one step along it."""
    gradient(net)
    found = [p.grad.clone() for p in net.parameters()]
    torch.optim.SGD(net.parameters(), lr=0.1).step()
    return [*found, *net.parameters()]


def by_torchjd(aggregator, guided=False):
    def gradient(net):
        losses, guide = losses_of(net)
        autojac.backward([*losses, guide] if guided else losses)
        autojac.jac_to_grad(net.parameters(), aggregator)

    return gradient


def by_paretoda(scheme):
    def gradient(net):
        losses, guide = losses_of(net)
        paretoda.backward(losses, shared=net, scheme=scheme, guide=guide)

    return gradient


@pytest.mark.parametrize("name", ON_GRADIENTS)
def test_a_step_of_theirs_with_our_scheme_is_our_step(name):
    guided = reads_guide(SCHEMES[name]())
    aggregator = to_torchjd(SCHEMES[name](), guide=-1 if guided else None)
    theirs = step(network(), by_torchjd(aggregator, guided))
    ours = step(network(), by_paretoda(SCHEMES[name]()))
    torch.testing.assert_close(theirs, ours, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", THEIRS)
def test_a_step_of_ours_with_their_weighting_is_their_step(name):
    weighting = THEIRS[name]
    whole = isinstance(weighting, aggregation.Aggregator)
    aggregator = weighting if whole else aggregation.GramianWeightedAggregator(weighting)
    theirs = step(network(), by_torchjd(aggregator))
    for module in weighting.modules():
        if hasattr(module, "reset"):
            module.reset()
    ours = step(network(), by_paretoda(from_torchjd(weighting)))
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_our_upgrad_and_theirs_are_one_up_to_the_number_of_losses():
    """The same in `paretoda.backward`, where ours is the sum and theirs the mean of the projected gradients."""
    ours = step(network(), by_paretoda(UPGrad(regularisation=1e-4)))
    theirs = step(network(), by_paretoda(from_torchjd(aggregation.UPGrad())))
    torch.testing.assert_close(ours[:4], [3 * gradient for gradient in theirs[:4]], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_there_and_back_is_the_same_scheme(seed):
    problem = draw("conflicting", 3, seed).problem
    for scheme in (MGDA(), UPGrad(), Linear((1.0, 0.5, 0.1))):
        again = from_torchjd(to_torchjd(scheme))
        assert again(problem).alpha == pytest.approx(scheme(problem).alpha, rel=1e-12)


def test_any_row_can_guide():
    case = draw("conflicting", 4, 0)
    table = torch.tensor(case.problem.gram)
    order = torch.tensor([3, 0, 1, 2])
    last = to_torchjd(ParetoDA(), guide=3).gramian_weighting(table)
    first = to_torchjd(ParetoDA(), guide=0).gramian_weighting(table[order][:, order])
    assert last[3] == 0
    torch.testing.assert_close(first, last[order])
    with pytest.raises(ValueError, match="guide=4 is no row of a Jacobian with 4 rows"):
        to_torchjd(ParetoDA(), guide=4).gramian_weighting(table)


def test_weights_held_for_some_steps_are_held_there_too():
    weighting = to_torchjd(Every(MGDA(), 2)).gramian_weighting
    grams = [torch.tensor(draw("conflicting", 3, seed).problem.gram) for seed in range(3)]
    first, second, third = (weighting(gram) for gram in grams)
    assert torch.equal(first, second)
    assert not torch.equal(second, third)


@pytest.mark.parametrize("name", SCHEMES)
def test_a_scheme_that_reads_losses_is_refused_and_no_other(name):
    """By its answers to other losses: over 120 steps, for some learn slowly."""

    def answers(rise):
        scheme, found = SCHEMES[name](), []
        for seed in range(120):
            problem = draw("conflicting", 3, seed % 4).problem
            losses = [1 + rise * seed, 1.0, 1 / (1 + rise * seed)]
            found.append(scheme(Problem(problem.gram, losses, problem.guide)).alpha.tolist())
        return found

    reads = answers(0) != answers(1)
    assert reads == isinstance(SCHEMES[name](), READ_LOSSES)
    if reads:
        with pytest.raises(ValueError, match=r"reads the losses.*paretoda\.backward"):
            to_torchjd(SCHEMES[name]())


def test_what_does_not_fit_is_refused_in_a_sentence():
    for reads in (MGDA(normalise="loss"), Every(Averaged(EPO()))):
        with pytest.raises(ValueError, match="reads the losses"):
            to_torchjd(reads)
    with pytest.raises(ValueError, match="ParetoDA needs a guide: say which row"):
        to_torchjd(Averaged(ParetoDA()))
    with pytest.raises(ValueError, match="MGDA follows no guide"):
        to_torchjd(MGDA(), guide=0)
    for jacobian in (aggregation.GradDrop(), aggregation.ExcessMTLWeighting()):
        with pytest.raises(TypeError, match=f"{type(jacobian).__name__} is not made for them"):
            from_torchjd(jacobian)
    with pytest.raises(TypeError, match="not int"):
        from_torchjd(3)


def test_without_torchjd_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchjd", None)
    with pytest.raises(ImportError, match=r'pip install "paretoda\[baselines\]"'):
        to_torchjd(MGDA())
