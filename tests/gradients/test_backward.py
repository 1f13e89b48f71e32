"""`paretoda.backward` writes exactly m Σ alpha_i g_i, by whatever way it got there."""

import math

import numpy as np
import pytest
import torch
from gradients.networks import Toy, flat_grad, rows_of
from torch import nn

import paretoda
from paretoda.core.certificates import keeps_guarantee
from paretoda.core.problem import Guide, GuideMissingError, Move, Problem
from paretoda.schemes import DWA, MGDA, SCHEMES, Every, Linear, ParetoDA, ParetoPaper


class ByRows:
    """Fixed weights that hide that they are known ahead, so that the rows are used."""

    guided = False

    def __init__(self, *weights):
        self.linear = Linear(weights)

    def __call__(self, problem):
        return self.linear(problem)


def run(toy, scheme, *, use_features=True, **settings):
    toy.clear()
    features = toy.features()
    return paretoda.backward(
        toy.losses(features),
        shared=toy.encoder,
        scheme=scheme,
        guide=toy.guide(features),
        features=features if use_features else None,
        heads=toy.classifier,
        private=[(toy.private(features), toy.discriminator)],
        offsets={"alignment": math.log(2)},
        **settings,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weights", [(), (1.0, 0.3, 0.3), (0.7, 0.1, 2.3)])
@pytest.mark.parametrize("use_features", [True, False])
def test_linear_is_one_plain_weighted_sum_bit_for_bit(dtype, weights, use_features):
    toy = Toy(dtype)
    run(toy, Linear(weights), use_features=use_features)
    ours = [p.grad.clone() for p in [*toy.encoder.parameters(), *toy.classifier.parameters()]]
    toy.clear()
    losses = toy.losses(toy.features())
    a, b, c = weights or (1.0, 1.0, 1.0)
    (a * losses["source"] + b * losses["alignment"] + c * losses["target"]).backward()
    plain = [p.grad for p in [*toy.encoder.parameters(), *toy.classifier.parameters()]]
    assert all(torch.equal(one, two) for one, two in zip(ours, plain, strict=True))


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("use_features", [True, False])
def test_through_the_rows_the_weighted_sum_is_the_same_to_1e_12(joint, use_features):
    toy = Toy(joint=joint)
    run(toy, ByRows(1.0, 0.3, 0.7), use_features=use_features)
    ours = flat_grad(toy.encoder)
    run(toy, Linear((1.0, 0.3, 0.7)), use_features=use_features)
    assert torch.allclose(ours, flat_grad(toy.encoder), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", sorted(SCHEMES))
@pytest.mark.parametrize("joint", [True, False])
def test_features_change_the_cost_and_not_the_result(name, joint):
    toy = Toy(joint=joint)
    one = run(toy, SCHEMES[name](), use_features=True)
    with_features = toy.grads()
    two = run(toy, SCHEMES[name](), use_features=False)
    assert one.move is two.move
    assert one.alpha == pytest.approx(two.alpha, abs=1e-10)
    for mine, other in zip(with_features, toy.grads(), strict=True):
        assert torch.allclose(mine, other, rtol=1e-10, atol=1e-12)


def test_views_of_one_forward_pass_are_one_graph_even_where_no_loss_needs_both():
    toy = Toy(joint=True)
    both = [toy.features() for _ in range(2)]
    one, two = ({k: v for k, v in toy.losses(f).items() if k != "alignment"} for f in both)
    with_features = paretoda.backward(one, shared=toy.encoder, scheme=MGDA(), features=both[0][:2])
    ours = flat_grad(toy.encoder)
    toy.clear()
    without = paretoda.backward(two, shared=toy.encoder, scheme=MGDA())
    assert with_features.alpha == pytest.approx(without.alpha, abs=1e-10)
    assert torch.allclose(ours, flat_grad(toy.encoder), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("scheme", [ParetoPaper(), ParetoDA(), MGDA()])
def test_the_scheme_sees_the_inner_products_and_the_step_is_m_times_their_combination(scheme):
    toy = Toy()
    rows = rows_of(toy)
    report = run(toy, scheme)
    gram = (rows @ rows.T).numpy()
    problem = Problem(
        gram[:3, :3],
        report.losses,
        Guide(gram[:3, 3], gram[3, 3], float(toy.guide(toy.features()).detach())),
        report.names,
    )
    assert report.alpha == pytest.approx(scheme(problem).alpha, abs=1e-9)
    assert torch.allclose(flat_grad(toy.encoder), 3 * torch.tensor(report.alpha) @ rows[:3], rtol=1e-9, atol=1e-12)
    lengths = np.sqrt(np.diagonal(gram))
    assert report.cosines == pytest.approx((gram / np.outer(lengths, lengths))[:3, :3])
    if report.guide_cosines is not None:
        assert report.guide_cosines == pytest.approx(gram[:3, 3] / lengths[:3] / lengths[3])
        assert keeps_guarantee(problem, report.alpha)


def test_the_losses_really_change_by_the_predicted_amount():
    """A small step along -grad changes each loss, and the guide's, by -t (m A alpha) to first order."""
    toy = Toy()
    rows = rows_of(toy)
    report = run(toy, ParetoPaper())
    direction = flat_grad(toy.encoder)
    before = torch.stack([*toy.losses(toy.features()).values(), toy.guide(toy.features())])
    step = 1e-5
    with torch.no_grad():
        for p in toy.encoder.parameters():
            p.sub_(step * p.grad)
    after = torch.stack([*toy.losses(toy.features()).values(), toy.guide(toy.features())])
    assert torch.allclose((after - before) / step, -(rows @ direction), rtol=1e-2, atol=1e-3)
    assert report.move is Move.GUIDED
    assert after[3] < before[3]


def test_the_heads_follow_all_losses_unweighted_or_those_that_are_named():
    toy = Toy()
    features = toy.features()
    losses = toy.losses(features)
    parameters = list(toy.classifier.parameters())
    source = torch.autograd.grad(losses["source"], parameters, retain_graph=True)
    target = torch.autograd.grad(losses["target"], parameters, retain_graph=True)
    for scheme in (MGDA(), ParetoPaper()):
        for use_features in (True, False):
            run(toy, scheme, use_features=use_features)
            for p, s, t in zip(parameters, source, target, strict=True):
                assert torch.allclose(p.grad, s + t)
            for chosen in (["source"], [0]):
                run(toy, scheme, use_features=use_features, head_losses=chosen)
                for p, s in zip(parameters, source, strict=True):
                    assert torch.allclose(p.grad, s)
    run(toy, Linear((1.0, 1.0, 0.2)), head_losses=["target"])
    assert torch.allclose(parameters[0].grad, target[0])
    run(toy, DWA(), head_losses=None)
    assert torch.allclose(parameters[0].grad, source[0] + target[0])
    with pytest.raises(ValueError, match="head_losses names 'tarqet'"):
        run(toy, MGDA(), head_losses=["tarqet"])


@pytest.mark.parametrize("scheme", [Linear(), MGDA(), Every(MGDA())])
def test_an_adversary_follows_its_own_loss_and_nothing_else(scheme):
    toy = Toy()
    run(toy, scheme)
    own = torch.autograd.grad(toy.private(toy.features()), list(toy.discriminator.parameters()))
    for p, g in zip(toy.discriminator.parameters(), own, strict=True):
        assert torch.allclose(p.grad, g)
    toy.clear()
    features = toy.features()
    paretoda.backward(toy.losses(features), shared=toy.encoder, scheme=scheme, features=features)
    assert all(p.grad is None for p in [*toy.discriminator.parameters(), *toy.classifier.parameters()])


@pytest.mark.parametrize("use_features", [True, False])
def test_the_last_layer_alone_can_vote_and_all_follow(use_features):
    toy = Toy()
    rows = []
    last = list(toy.encoder[3].parameters())
    features = toy.features()
    for loss in [*toy.losses(features).values(), toy.guide(features)]:
        found = torch.autograd.grad(loss, last, retain_graph=True)
        rows.append(torch.cat([g.reshape(-1) for g in found]))
    gram = (torch.stack(rows) @ torch.stack(rows).T).numpy()
    report = run(toy, ParetoPaper(), use_features=use_features, voting="last")
    ours = toy.grads()
    expected = ParetoPaper()(Problem(gram[:3, :3], report.losses, Guide(gram[:3, 3], gram[3, 3], report.guide_loss)))
    assert report.alpha == pytest.approx(expected.alpha, abs=1e-9)
    run(toy, ByRows(*(3 * report.alpha)))
    encoder = len(list(toy.encoder.parameters()))
    for mine, other in zip(ours[:encoder], toy.grads()[:encoder], strict=True):
        assert torch.allclose(mine, other, rtol=1e-10, atol=1e-12)
    again = run(toy, ParetoPaper(), use_features=use_features, voting=toy.encoder[3])
    assert again.alpha.tolist() == report.alpha.tolist()


def test_the_guide_of_the_last_layer_needs_no_graph_below_it():
    toy = Toy()
    source, target, _ = toy.features()
    with torch.no_grad():
        below = toy.encoder[:3](toy.held_out)
    held_out = toy.encoder[3](below)
    features = (source, target, held_out)
    report = paretoda.backward(
        toy.losses(features),
        shared=toy.encoder,
        scheme=ParetoPaper(),
        guide=toy.guide(features),
        features=features,
        voting="last",
    )
    full = run(Toy(), ParetoPaper(), voting="last")
    assert report.alpha == pytest.approx(full.alpha, abs=1e-10)


def test_held_weights_cost_one_backward_pass_and_are_the_refreshed_ones():
    toy, scheme = Toy(), Every(ParetoPaper(), every=3)
    reports = [run(toy, scheme) for _ in range(4)]
    assert [r.move for r in reports] == [Move.GUIDED, Move.HELD, Move.HELD, Move.GUIDED]
    assert reports[1].alpha.tolist() == reports[0].alpha.tolist()
    assert reports[1].cosines is None
    held = flat_grad(toy.encoder)
    run(toy, ParetoPaper())
    assert torch.allclose(held, flat_grad(toy.encoder))


def test_inner_products_are_taken_in_the_metric_of_the_optimiser():
    toy = Toy()
    optimiser = torch.optim.SGD(
        [{"params": toy.encoder[0].parameters(), "lr": 0.01}, {"params": toy.encoder[1:].parameters(), "lr": 0.1}]
    )
    rates = torch.cat([torch.full((p.numel(),), 0.1 if i < 2 else 1.0) for i, p in enumerate(toy.encoder.parameters())])
    rows = rows_of(toy)
    gram = (rows * rates @ rows.T).numpy()
    report = run(toy, ParetoPaper(), metric=optimiser)
    problem = Problem(gram[:3, :3], report.losses, Guide(gram[:3, 3], gram[3, 3], report.guide_loss))
    assert report.alpha == pytest.approx(ParetoPaper()(problem).alpha, abs=1e-8)
    by_hand = {p: 0.01 if i < 2 else 0.1 for i, p in enumerate(toy.encoder.parameters())}
    assert run(toy, ParetoPaper(), metric=by_hand).alpha == pytest.approx(report.alpha)
    still = torch.optim.SGD(toy.encoder.parameters(), lr=0.0)
    assert run(toy, ParetoPaper(), metric=still).alpha == pytest.approx(run(toy, ParetoPaper()).alpha)
    with pytest.raises(ValueError, match="no learning rate for 6 of 6"):
        run(toy, ParetoPaper(), metric=torch.optim.SGD(toy.classifier.parameters(), lr=0.1))


def test_gradients_accumulate_and_can_be_clipped_and_stepped_by_any_optimiser():
    toy = Toy()
    run(toy, MGDA())
    once = flat_grad(toy.encoder)
    features = toy.features()
    paretoda.backward(toy.losses(features), shared=toy.encoder, scheme=MGDA(), features=features)
    assert torch.allclose(flat_grad(toy.encoder), 2 * once)
    for make in (torch.optim.SGD, torch.optim.AdamW, torch.optim.Adagrad):
        toy = Toy()
        optimiser = make(toy.parameters(), lr=0.05)
        values = []
        for _ in range(30):
            optimiser.zero_grad()
            report = run(toy, ParetoDA())
            nn.utils.clip_grad_norm_(toy.parameters(), 1.0)
            optimiser.step()
            values.append(report.losses[0])
        assert values[-1] < values[0]


def test_a_guided_scheme_without_a_guide_says_so_and_writes_nothing():
    toy = Toy()
    with pytest.raises(GuideMissingError, match="'paretoda' needs a guide"):
        paretoda.backward(toy.losses(toy.features()), shared=toy.encoder, scheme=ParetoDA())
    assert toy.grads() == [None] * len(toy.grads())


def test_a_report_reads_well():
    report = run(Toy(), ParetoPaper())
    assert set(report.weights) == {"source", "alignment", "target"}
    assert sum(report.weights.values()) == pytest.approx(3.0)
    assert "source" in str(report)
    assert "guided" in str(report)
