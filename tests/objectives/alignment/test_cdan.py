import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, adversary_fitted, gradients, silent, source_of, target_of

from paretoda.objectives import Cdan
from paretoda.objectives.alignment.cdan import certainty_weights, multilinear, randomised_multilinear


def cdan(samples, **options):
    torch.manual_seed(0)
    return Cdan(features=samples.features, classes=samples.classes, hidden=8, **options).double()


@given(st.integers(1, 6), st.integers(2, 6), st.integers(0, 1000))
def test_inner_products_of_outer_products_are_products_of_inner_products(d, k, seed):
    generator = torch.Generator().manual_seed(seed)
    f, g = (torch.randn(5, n, dtype=torch.float64, generator=generator) for n in (d, k))
    joined = multilinear(f, g)
    torch.testing.assert_close(joined @ joined.T, (f @ f.T) * (g @ g.T))


def test_random_projections_keep_these_inner_products_on_average():
    generator = torch.Generator().manual_seed(0)
    f, g = (torch.randn(4, n, dtype=torch.float64, generator=generator) for n in (5, 3))
    project, predict = (torch.randn(n, 400_000, dtype=torch.float64, generator=generator) for n in (5, 3))
    joined = randomised_multilinear(f, g, project, predict)
    exact = (f @ f.T) * (g @ g.T)
    assert (joined @ joined.T - exact).abs().max() < 0.02 * exact.abs().max()


@pytest.mark.parametrize(("features", "classes", "chosen"), [(256, 16, "multilinear"), (256, 17, "randomised")])
def test_outer_products_are_written_out_up_to_4096(features, classes, chosen):
    objective = Cdan(features, classes, hidden=2)
    assert objective.conditioning == chosen
    assert objective.discriminator.first.in_features == (4096 if chosen == "multilinear" else 1024)


def test_projections_are_drawn_once_and_saved():
    samples = Samples()
    objective = cdan(samples, conditioning="randomised", projections=16)
    state = {key: value.clone() for key, value in objective.state_dict().items() if key in ("project", "predict")}
    assert len(state) == 2
    objective(*samples.batch())
    objective.private_loss(*samples.batch())
    objective.train().advance(0.5)
    assert all(torch.equal(objective.state_dict()[key], value) for key, value in state.items())
    assert not {"project", "predict"} & {name for name, _ in objective.named_parameters()}


@pytest.mark.parametrize("classes", [2, 5, 65])
def test_weights_before_scaling_go_from_1_plus_1_over_k_to_2(classes):
    uniform, certain = torch.zeros(1, classes, dtype=torch.float64), torch.zeros(1, classes, dtype=torch.float64)
    certain[0, 0] = 1e4
    one, two = certainty_weights(uniform, certain, "joint")
    assert (one / two).item() == pytest.approx((1 + 1 / classes) / 2)
    both = torch.cat([uniform, certain])
    inside, _ = certainty_weights(both, uniform, "per-domain")
    assert inside.tolist() == pytest.approx([(1 + 1 / classes) / (1.5 + 0.5 / classes), 2 / (1.5 + 0.5 / classes)])


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 100))
def test_weights_have_mean_one(n, m, seed):
    generator = torch.Generator().manual_seed(seed)
    source, target = (3 * torch.randn(k, 4, dtype=torch.float64, generator=generator) for k in (n, m))
    joint, own = certainty_weights(source, target, "joint"), certainty_weights(source, target, "per-domain")
    assert (joint[0].mean() + joint[1].mean()).item() == pytest.approx(2)
    assert [part.mean().item() for part in own] == pytest.approx([1, 1])


@pytest.mark.parametrize("entropy", [False, True])
@pytest.mark.parametrize("balance", ["joint", "per-domain"])
def test_an_undecided_discriminator_knows_nothing(entropy, balance):
    samples = Samples(source=5, target=8)
    objective = cdan(samples, entropy=entropy, balance=balance)
    with torch.no_grad():
        objective.discriminator.last.weight.zero_()
        objective.discriminator.last.bias.zero_()
    assert objective(*samples.batch()).item() == pytest.approx(0, abs=1e-12)
    assert objective.private_loss(*samples.batch()).item() == pytest.approx(math.log(2))


def test_entropy_weights_are_those_of_both_published_codes():
    samples = Samples(source=6, target=6)
    source, target = samples.batch()
    logits = torch.cat([source.logits, target.logits])
    p = logits.softmax(1)
    w = 1 + torch.exp((p * p.log()).sum(1))
    joint = cdan(samples, entropy=True)
    scores = joint.discriminator(torch.cat([joint.combine(source), joint.combine(target)]), "batch").squeeze(1)
    is_source = (torch.arange(12) < 6).double()
    losses = torch.nn.functional.binary_cross_entropy_with_logits(scores, is_source, reduction="none")
    tllib = (w / w.sum() * 12 * losses).mean()
    assert joint.private_loss(source, target).item() == pytest.approx(tllib.item())
    authors = (w[:6] * losses[:6]).sum() / w[:6].sum() / 2 + (w[6:] * losses[6:]).sum() / w[6:].sum() / 2
    apart = cdan(samples, entropy=True, balance="per-domain")
    assert apart.private_loss(source, target).item() == pytest.approx(authors.item())


@pytest.mark.parametrize("entropy", [False, True])
def test_the_head_gets_nothing_because_predictions_are_constants(entropy):
    samples = Samples()
    loss = cdan(samples, entropy=entropy)(*samples.batch())
    assert silent(loss, samples.heads())
    assert not silent(loss, samples.body())


def test_predictions_are_probabilities():
    samples = Samples()
    objective = cdan(samples)
    source, target = samples.batch()
    shifted = source_of(source.features, source.logits + 7), target_of(target.features, target.logits - 3)
    assert objective(*shifted).item() == pytest.approx(objective(source, target).item())


def test_reversed_entropy_gradient_lowers_the_objective_through_the_weights():
    samples = Samples()
    plain = cdan(samples, entropy=True)
    reverse = cdan(samples, entropy=True, entropy_grad="reversed")
    source, target = samples.batch()
    assert plain(source, target).item() == pytest.approx(reverse(source, target).item())
    found = gradients(reverse(source, target), [source.logits, target.logits])
    p = [domain.logits.detach().requires_grad_() for domain in (source, target)]
    weights = [1 + torch.exp((z.softmax(1) * z.log_softmax(1)).sum(1)) for z in p]
    mean = sum(w.detach().mean() for w in weights) / 2
    rows = torch.cat([plain.combine(source), plain.combine(target)]).detach()
    scores = plain.discriminator(rows, "batch").squeeze(1).detach()
    losses = torch.nn.functional.softplus(torch.cat([-scores[:9], scores[9:]]))
    cross_entropy = ((weights[0] * losses[:9]).mean() + (weights[1] * losses[9:]).mean()) / mean / 2
    for one, other in zip(found, torch.autograd.grad(cross_entropy, p), strict=True):
        torch.testing.assert_close(one, -other)
    assert not silent(reverse(*samples.batch()), samples.heads())


def test_a_step_of_the_encoder_raises_the_discriminators_cross_entropy():
    samples = Samples()
    for options in ({}, {"entropy": True}, {"conditioning": "randomised", "projections": 32}):
        objective = adversary_fitted(cdan(samples, **options), samples, steps=50)
        source, target = samples.batch()
        before = objective.private_loss(source, target).item()
        moved = gradients(objective(source, target), [source.features, target.features])
        source = source_of(source.features - 1e-3 * moved[0], source.logits)
        target = target_of(target.features - 1e-3 * moved[1], target.logits)
        assert objective.private_loss(source, target).item() > before


def test_the_discriminator_learns_at_full_strength():
    samples = Samples()
    objective = cdan(samples, entropy=True)
    private = objective.private_loss(*samples.batch()).item()
    objective.advance(0.1)
    assert objective.private_loss(*samples.batch()).item() == pytest.approx(private)
    full = math.log(2) - private
    assert objective(*samples.batch()).item() == pytest.approx(math.tanh(0.5) * full)


@pytest.mark.parametrize("option", ["balance", "entropy_grad", "conditioning"])
def test_an_unknown_choice_is_refused(option):
    with pytest.raises(ValueError, match=f"{option} must be one of"):
        Cdan(4, 3, **{option: "other"})
