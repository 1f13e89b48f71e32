"""What goes wrong is named, and leaves everything as it was."""

import pytest
import torch
from gradients.networks import Toy, flat_grad
from gradients.test_backward import run
from torch import nn

import paretoda
from paretoda.core.problem import Move
from paretoda.gradients.tensors import all_finite
from paretoda.schemes import MGDA, Linear, ParetoPaper


class Bad(torch.autograd.Function):
    """Passes its input through; its gradient is NaN."""

    @staticmethod
    def forward(_ctx, x):
        return x.clone()

    @staticmethod
    def backward(_ctx, gradient):
        return gradient * float("nan")


def broken(toy, name, kind):
    features = toy.features()
    losses = toy.losses(features)
    losses[name] = losses[name] / 0.0 if kind == "loss" else Bad.apply(losses[name])
    return features, losses


@pytest.mark.parametrize("scheme", [Linear(), MGDA(), ParetoPaper()])
@pytest.mark.parametrize("kind", ["loss", "gradient"])
@pytest.mark.parametrize("use_features", [True, False])
def test_a_non_finite_objective_is_named_and_no_gradient_is_touched(scheme, kind, use_features):
    toy = Toy()
    run(toy, MGDA())
    before = toy.grads()
    features, losses = broken(toy, "alignment", kind)
    with pytest.raises(paretoda.NonFiniteError, match=f"the {kind} of .*'alignment'"):
        paretoda.backward(
            losses,
            shared=toy.encoder,
            scheme=scheme,
            guide=toy.guide(features),
            features=features if use_features else None,
            heads=toy.classifier,
        )
    for one, two in zip(before, toy.grads(), strict=True):
        assert torch.equal(one, two)


def test_a_non_finite_guide_head_or_private_loss_is_named():
    toy = Toy()

    def attempt(*, guide=lambda loss: loss, source=lambda loss: loss, private=lambda loss: loss):
        features = toy.features()
        losses = toy.losses(features)
        losses["source"] = source(losses["source"])
        own = [(toy.private(features), toy.discriminator), (private(toy.private(features)), toy.discriminator)]
        paretoda.backward(
            losses,
            shared=toy.encoder,
            scheme=ParetoPaper(),
            guide=guide(toy.guide(features)),
            features=features,
            heads=toy.classifier,
            private=own,
        )

    with pytest.raises(paretoda.NonFiniteError, match="the gradient of 'the guide'"):
        attempt(guide=Bad.apply)
    with pytest.raises(paretoda.NonFiniteError, match="the loss of 'the guide' is nan"):
        attempt(guide=lambda loss: loss * float("nan"))
    with pytest.raises(paretoda.NonFiniteError, match="private loss 1"):
        attempt(private=Bad.apply)
    with pytest.raises(paretoda.NonFiniteError, match="the gradient of 'source'"):
        attempt(source=lambda loss: loss + Bad.apply(toy.classifier.weight.sum()))
    assert toy.grads() == [None] * len(toy.grads())
    attempt()


@pytest.mark.parametrize("scheme", [Linear(), MGDA(), ParetoPaper()])
def test_a_scaler_changes_neither_weights_nor_gradients(scheme):
    plain, scaled = Toy(torch.float32), Toy(torch.float32)
    one = run(plain, scheme)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    optimiser = torch.optim.SGD(scaled.parameters(), lr=0.0)
    two = run(scaled, scheme, scaler=scaler)
    assert flat_grad(scaled.encoder).abs().max() > 100 * flat_grad(plain.encoder).abs().max()
    scaler.unscale_(optimiser)
    assert one.alpha == pytest.approx(two.alpha, abs=1e-5)
    for mine, other in zip(plain.grads(), scaled.grads(), strict=True):
        assert torch.allclose(mine, other, rtol=1e-4, atol=1e-6)


def test_the_scheme_sees_inner_products_without_the_scale():
    class Spy:
        guided = False

        def __call__(self, problem):
            self.gram = problem.gram
            return MGDA()(problem)

    plain, scaled = Spy(), Spy()
    run(Toy(torch.float32), plain)
    run(Toy(torch.float32), scaled, scaler=torch.amp.GradScaler("cpu", init_scale=2.0**12))
    assert scaled.gram == pytest.approx(plain.gram, rel=1e-4)


@pytest.mark.parametrize("kind", ["loss", "gradient"])
@pytest.mark.parametrize("scheme", [Linear(), MGDA()])
def test_a_non_finite_step_is_handed_to_the_scaler_which_skips_every_optimiser_and_backs_off(kind, scheme):
    toy = Toy(torch.float32)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimisers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (toy.encoder, toy.classifier, toy.discriminator)]
    before = [p.detach().clone() for p in toy.parameters()]
    features, losses = broken(toy, "target", kind)
    report = paretoda.backward(
        losses,
        shared=toy.encoder,
        scheme=scheme,
        features=features,
        heads=toy.classifier,
        private=[(toy.private(features), toy.discriminator)],
        scaler=scaler,
    )
    assert not report.finite
    assert report.move is Move.SKIPPED
    for optimiser in optimisers:
        scaler.step(optimiser)
    scaler.update()
    assert scaler.get_scale() == 512.0
    assert all(torch.equal(one, two) for one, two in zip(before, toy.parameters(), strict=True))


def test_a_scaler_that_is_switched_off_does_not_hide_the_error():
    toy = Toy(torch.float32)
    _, losses = broken(toy, "target", "gradient")
    with pytest.raises(paretoda.NonFiniteError, match="'target'"):
        paretoda.backward(losses, shared=toy.encoder, scheme=MGDA(), scaler=torch.amp.GradScaler("cpu", enabled=False))


@pytest.mark.parametrize("use_features", [True, False])
def test_parameters_that_a_loss_does_not_reach_give_zero_rows_in_their_place(use_features):
    """Misaligned rows would turn the step: the source's gradient must not move to the target's parameters."""
    torch.manual_seed(0)
    left, right = nn.Linear(3, 2, bias=False), nn.Linear(3, 2, bias=False)
    shared = nn.ModuleList([left, right, nn.Linear(4, 4)])
    one, two = left(torch.randn(5, 3)), right(torch.randn(5, 3))
    losses = [one.square().mean(), two.square().mean(), torch.zeros(())]
    own = [
        torch.autograd.grad(loss, side.weight, retain_graph=True)[0]
        for loss, side in zip(losses[:2], (left, right), strict=True)
    ]
    report = paretoda.backward(
        losses, shared=shared, scheme=MGDA(normalise="l2"), features=(one, two) if use_features else None
    )
    assert report.cosines[0, 1] == 0.0
    assert (report.alpha > 0).tolist() == [True, True, False], "a loss without gradient is a zero row, without a say"
    for side, gradient, weight in zip((left, right), own, report.alpha[:2], strict=True):
        torch.testing.assert_close(side.weight.grad, 3 * weight * gradient)
    assert shared[2].weight.grad is None


def test_frozen_and_repeated_parameters():
    toy = Toy()
    toy.encoder[0].weight.requires_grad_(False)
    run(toy, MGDA())
    assert toy.encoder[0].weight.grad is None
    before = flat_grad(toy.encoder[1:])
    toy.clear()
    features = toy.features()
    twice = [*toy.encoder.parameters(), *toy.encoder.parameters()]
    paretoda.backward(toy.losses(features), shared=twice, scheme=MGDA(), features=features)
    assert torch.allclose(flat_grad(toy.encoder[1:]), before)


def test_a_parameter_that_two_modules_share_counts_once_with_both_paths():
    torch.manual_seed(0)
    encoder, head = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
    head.weight = encoder.weight
    x = torch.randn(6, 4)
    features = encoder(x)
    losses = [head(features).square().mean(), features.abs().mean()]
    expected = torch.autograd.grad(losses[0] + losses[1], encoder.weight, retain_graph=True)[0]
    with pytest.raises(ValueError, match="in shared and in heads"):
        paretoda.backward(losses, shared=encoder, heads=head, scheme=Linear(), features=features)
    paretoda.backward(losses, shared=encoder, heads=head, scheme=Linear())
    assert torch.allclose(encoder.weight.grad, expected)


def test_gradients_that_share_memory_are_written_apart():
    a, b = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    paretoda.backward([(a + b).sum()], shared=[a, b], scheme=Linear())
    a.grad.mul_(5)
    assert b.grad.tolist() == [1, 1, 1]
    assert a.grad.tolist() == [5, 5, 5]


def test_with_features_the_body_is_released_at_once():
    toy = Toy()
    features = toy.features()
    paretoda.backward(toy.losses(features), shared=toy.encoder, scheme=MGDA(), features=features[:2])
    for feature in features[:2]:
        with pytest.raises(RuntimeError, match="second time"):
            torch.autograd.grad(feature.sum(), list(toy.encoder.parameters()))


def test_wrong_arguments_get_one_sentence():
    toy = Toy()
    losses = toy.losses(toy.features())
    with pytest.raises(ValueError, match="losses is empty"):
        paretoda.backward([], shared=toy.encoder, scheme=MGDA())
    with pytest.raises(ValueError, match=r"'loss 0' has shape \(2,\)"):
        paretoda.backward([torch.ones(2)], shared=toy.encoder, scheme=MGDA())
    with pytest.raises(ValueError, match="no parameter that requires a gradient"):
        paretoda.backward(losses, shared=[], scheme=MGDA())
    with pytest.raises(TypeError, match="put it in a list"):
        paretoda.backward(losses, shared=toy.encoder[0].weight, scheme=MGDA())
    with pytest.raises(ValueError, match="voting must be 'all', 'last'"):
        paretoda.backward(losses, shared=toy.encoder, scheme=MGDA(), voting="first")
    with pytest.raises(ValueError, match="shared parameters only"):
        paretoda.backward(losses, shared=toy.encoder, scheme=MGDA(), voting=toy.classifier)


@pytest.mark.parametrize("scheme", [Linear(), ParetoPaper()])
def test_bf16_autocast_trains(scheme):
    toy = Toy(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = toy.features()
        losses, guide = toy.losses(features), toy.guide(features)
    assert features[0].dtype is torch.bfloat16
    report = paretoda.backward(losses, shared=toy.encoder, scheme=scheme, guide=guide, features=features)
    exact = run(Toy(torch.float32), scheme)
    assert report.losses == pytest.approx(exact.losses, rel=0.05, abs=0.02)
    assert flat_grad(toy.encoder).dtype is torch.float32


def test_bf16_parameters_get_bf16_gradients():
    net = nn.Linear(4, 3).to(torch.bfloat16)
    y = net(torch.randn(5, 4, dtype=torch.bfloat16))
    paretoda.backward([y.square().mean(), (y - 1).square().mean()], shared=net, scheme=MGDA())
    assert net.weight.grad.dtype is torch.bfloat16


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiled_modules_give_the_same_gradients(backend):
    import torch._functorch.config as functorch

    torch.compiler.reset()
    plain, toy = Toy(), Toy()
    run(plain, ParetoPaper())
    encoder = toy.encoder
    with functorch.patch(donated_buffer=False):
        toy.encoder = torch.compile(encoder, backend=backend)
        run(toy, ParetoPaper())
    assert torch.allclose(flat_grad(encoder), flat_grad(plain.encoder), rtol=1e-9, atol=1e-12)


def test_a_compiled_module_that_gives_its_buffers_away_says_what_to_set():
    torch.compiler.reset()
    toy = Toy()
    toy.encoder = torch.compile(toy.encoder, backend="aot_eager")
    run(toy, Linear())
    with pytest.raises(RuntimeError, match="donated_buffer = False"):
        run(toy, ParetoPaper())


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("place", [0, 7])
def test_one_bad_number_among_many_is_found(bad, place):
    good = torch.randn(4, 2)
    assert all_finite([good, None, torch.zeros(3)])
    other = good.clone()
    other.view(-1)[place] = bad
    assert not all_finite([good, other])


def test_opposite_infinities_are_found_and_a_sum_that_overflows_is_none():
    assert not all_finite([torch.tensor([float("inf"), -float("inf")])])
    assert all_finite([torch.full((4,), 3e38)])
    assert all_finite([None])
