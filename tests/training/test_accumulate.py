"""A batch in micro-batches moves every parameter as the whole batch does, whatever the losses are."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from paretoda.objectives import CrossEntropy, make_alignment, make_guide, make_target_loss
from paretoda.schemes import MGDA, Linear, ParetoDA, ParetoPaper
from paretoda.training.step import Step
from paretoda.types import Batch, Model

ROWS, GUIDES = 12, 9
SCHEMES = {"linear": Linear, "paretoda": ParetoDA, "mgda": MGDA}


def made(method, scheme, *, dropout=0.0, target="tcm", norm=False, optimiser=torch.optim.SGD, **how):
    """An encoder of two parts, in float64, with every kind of loss behind it."""
    torch.manual_seed(0)

    def part(inputs, outputs):
        return nn.Sequential(
            nn.Linear(inputs, outputs),
            nn.BatchNorm1d(outputs) if norm else nn.Identity(),
            nn.Tanh(),
            nn.Dropout(dropout),
        )

    model = Model(nn.Sequential(part(5, 12), part(12, 6)), nn.Linear(6, 3)).double()
    shape = {"features": 6, "classes": 3}
    objectives = {
        "source": CrossEntropy(6, 3),
        "alignment": make_alignment(method, **shape, options=how.pop("options", {})),
        "target": make_target_loss(target, **shape, options={}),
    }
    guide = make_guide(
        "tcm" if target == "tcm" else "im", **shape, target_loss=objectives["target"], options={}
    ).double()
    for objective in objectives.values():
        objective.double()
    own = [parameter for objective in objectives.values() for parameter in objective.parameters()]
    return Step(model, objectives, scheme(), optimiser([*model.parameters(), *own], lr=0.1), guide=guide, **how)


def batch(seed=5):
    torch.manual_seed(seed)
    index = torch.arange(ROWS)
    source, target = torch.randn(2, ROWS, 5).double()
    return Batch(source, index % 3, target + 1, torch.randn(GUIDES, 5).double() + 1, index, index, torch.arange(GUIDES))


def trained(step, steps=2):
    """All parameters and buffers after some steps, and what chance would draw next."""
    reports = []
    for number in range(steps):
        step.advance(0.3 + number / 5)
        torch.manual_seed(9 + number)
        reports.append(step(batch(number)))
    state = step.modules().state_dict().values()
    return torch.cat([tensor.detach().double().reshape(-1) for tensor in state]), torch.rand(3), reports


@pytest.mark.parametrize("method", ["dann", "dan", "cdan", "mdd"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("how", [("all", "joint"), ("all", "per-domain"), ("last", "joint"), ("last", "per-domain")])
def test_micro_batches_equal_the_whole_batch(method, scheme, how):
    settings = {"voting": how[0], "bn": how[1], "dropout": 0.3}
    whole, chance, reports = trained(made(method, SCHEMES[scheme], **settings))
    for parts in (2, 5):  # one divides the batch, one does not
        state, drawn, mine = trained(made(method, SCHEMES[scheme], accumulate=parts, **settings))
        assert torch.allclose(state, whole, rtol=0, atol=1e-10)
        assert torch.equal(drawn, chance), "chance goes on as after the whole batch"
        for one, other in zip(mine, reports, strict=True):
            assert one.alpha == pytest.approx(other.alpha, abs=1e-9)
            assert one.guide_loss == pytest.approx(other.guide_loss, abs=1e-10)


@pytest.mark.parametrize("target", ["mcc", "bnm", "bsp", "entropy"])
def test_other_losses_on_the_target_are_of_the_whole_batch_too(target):
    whole, *_ = trained(made("coral", ParetoPaper, target=target))
    state, *_ = trained(made("coral", ParetoPaper, target=target, accumulate=3))
    assert torch.allclose(state, whole, rtol=0, atol=1e-10)


def test_an_objective_that_the_encoder_lowers_several_times_is_lowered_in_micro_batches():
    """Its own updates once converted to single precision on the way."""
    settings = {"options": {"encoder_updates": 3}, "dropout": 0.2}
    whole, *_ = trained(made("mcd", Linear, **settings))
    state, *_ = trained(made("mcd", Linear, accumulate=2, **settings))
    once, *_ = trained(made("mcd", Linear, accumulate=2, dropout=0.2))
    assert torch.allclose(state, whole, rtol=0, atol=1e-10)
    assert not torch.allclose(once, whole, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("voting", "scheme", "forwards"),
    [("all", ParetoPaper, 2), ("last", ParetoPaper, 2), ("all", Linear, 2)],
)
@pytest.mark.parametrize("bn", ["joint", "per-domain"])
def test_every_micro_batch_is_forwarded_twice_and_the_guide_where_only_the_last_layer_votes_once(
    voting, scheme, forwards, bn
):
    step = made("dann", scheme, voting=voting, bn=bn, accumulate=3)
    seen = []
    step.model.encoder[0].register_forward_hook(lambda _module, inputs, _output: seen.append(len(inputs[0])))
    step(batch())
    domains = 2 * ROWS * forwards
    guide = 0 if scheme is Linear else GUIDES * (1 if voting == "last" else 2)
    assert sum(seen) == domains + guide
    assert max(seen) <= (8 if bn == "joint" else 4), "no pass is larger than a micro-batch"


@pytest.mark.parametrize("bn", ["joint", "per-domain"])
def test_batchnorm_remembers_a_batch_once(bn):
    whole, parts = (
        made("dann", ParetoPaper, norm=True, bn=bn),
        made("dann", ParetoPaper, norm=True, bn=bn, accumulate=3),
    )
    for step in (whole, parts):
        step(batch())
    first, second = (step.model.encoder[0][1] for step in (whole, parts))
    assert second.num_batches_tracked.item() == first.num_batches_tracked.item() == 1
    assert torch.allclose(second.running_mean, first.running_mean, rtol=0, atol=1e-12)
    assert torch.allclose(second.running_var, first.running_var, rtol=0, atol=1e-12)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_batchnorm_remembers_nothing_of_the_held_out_samples(accumulate):
    found = []
    for shift in (0, 100):
        step, given = made("dann", ParetoPaper, norm=True, accumulate=accumulate), batch()
        step(replace(given, guide=given.guide + shift))
        found.append(step.model.encoder[0][1])
    assert torch.equal(found[0].running_mean, found[1].running_mean)
    assert torch.equal(found[0].running_var, found[1].running_var)


def test_half_precision_is_that_of_the_whole_batch():
    def single(accumulate):
        step = made("dann", ParetoPaper, accumulate=accumulate, precision="bf16")
        step.modules().float()
        given = batch().tensors()
        report = step(Batch(**{name: t.float() if t.is_floating_point() else t for name, t in given.items()}))
        return report, torch.cat([p.detach().reshape(-1) for p in step.model.parameters()])

    (one, whole), (two, parts) = single(1), single(3)
    assert two.losses == pytest.approx(one.losses, rel=0.02)
    assert torch.allclose(parts, whole, rtol=0.05, atol=2e-3)
    start = made("dann", ParetoPaper).model.parameters()
    assert not torch.allclose(parts, torch.cat([p.detach().float().reshape(-1) for p in start]), atol=1e-2)
