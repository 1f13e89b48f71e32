from collections.abc import Mapping

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import paretoda.training.cyclegan as module
from paretoda.models.cyclegan import CycleGan
from paretoda.training.cyclegan import (
    ImagePool,
    generator_losses,
    judge_loss,
    random_patches,
    realism_loss,
    semantic_loss,
    train_cyclegan,
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CycleGan", lambda: CycleGan(width=8, blocks=1))


def images(seed: int, n: int = 2, side: int = 16) -> Tensor:
    return torch.rand((n, 3, side, side), generator=torch.Generator().manual_seed(seed)) * 255


def segmenter(seed: int = 0, classes: int = 4) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(3, classes, 3, stride=2)).eval()


def with_identities() -> CycleGan:
    gan = CycleGan(8, 1)
    gan.to_target, gan.to_source = nn.Identity(), nn.Identity()
    return gan


@settings(max_examples=10)
@given(st.integers(0, 100))
def test_identity_generators_lose_only_what_the_judges_say(seed: int) -> None:
    network = segmenter(seed)
    source, target = images(seed) / 127.5 - 1, images(seed + 1) / 127.5 - 1
    gan = with_identities()
    terms, fakes = generator_losses(gan, source, target, network)
    assert terms["cycle"] == terms["identity"] == 0
    assert torch.equal(fakes[0], source)
    assert torch.equal(fakes[1], target)
    logits = [network((batch + 1) * 127.5) for batch in (source, target)]
    own = sum(cross_entropy(each, each.argmax(1)) for each in logits)
    assert torch.allclose(terms["semantic"], own)
    scores = gan.judge_target(source), gan.judge_source(target)
    assert torch.allclose(terms["adversarial"], (scores[0] - 1).square().mean() + (scores[1] - 1).square().mean())


def test_the_terms_have_the_published_weights() -> None:
    gan = with_identities()
    gan.to_target = nn.Sequential()
    gan.to_target.forward = lambda batch: batch + 0.1  # type: ignore[method-assign]
    terms, _ = generator_losses(gan, torch.zeros((1, 3, 16, 16)), torch.ones((1, 3, 16, 16)), None)
    assert terms["cycle"].item() == pytest.approx(10 * 0.2)
    assert terms["identity"].item() == pytest.approx(5 * 0.1)
    assert "semantic" not in terms


def test_the_semantic_loss_holds_the_decision_fixed() -> None:
    network = segmenter()
    before, after = images(0), images(1).requires_grad_()
    loss = semantic_loss(network, before.requires_grad_(), after)
    loss.backward()
    assert before.grad is None
    assert after.grad.abs().sum() > 0
    log = network(after).log_softmax(1)
    expected = -log.gather(1, network(before).argmax(1, keepdim=True)).mean()
    assert torch.allclose(loss, expected)


def test_a_judge_is_best_at_one_for_real_and_zero_for_fake() -> None:
    ones, zeros = torch.ones((1, 3, 4, 4)), torch.zeros((1, 3, 4, 4))
    assert judge_loss(nn.Identity(), ones, zeros) == 0
    assert judge_loss(nn.Identity(), zeros, ones) == 1
    assert realism_loss(torch.tensor([1.0, 3.0]), 1) == 2


def test_training_is_a_function_of_the_seed() -> None:
    source, target = random_patches(images(0, 6, 24), 1, 16), random_patches(images(1, 6, 24), 1, 16)
    torch.manual_seed(0)
    one = train_cyclegan(source, target, 3, seed=1).state_dict()
    torch.manual_seed(99)
    state = torch.get_rng_state()
    again = train_cyclegan(source, target, 3, seed=1).state_dict()
    assert torch.equal(torch.get_rng_state(), state)
    other = train_cyclegan(source, target, 3, seed=2).state_dict()
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_training_leaves_the_frozen_network_alone_and_changes_all_parts() -> None:
    network = segmenter()
    before = [parameter.clone() for parameter in network.parameters()]
    source, target = random_patches(images(0, 4), 1, 16), random_patches(images(1, 4), 1, 16)
    start = train_cyclegan(source, target, 0).state_dict()
    seen: list[tuple[int, list[str]]] = []

    def note(step: int, losses: Mapping[str, float]) -> None:
        seen.append((step, sorted(losses)))

    gan = train_cyclegan(source, target, 2, network, progress=note)
    assert all(torch.equal(*pair) for pair in zip(before, network.parameters(), strict=True))
    assert all(parameter.grad is None for parameter in network.parameters())
    assert seen == [(step, ["adversarial", "cycle", "identity", "judges", "semantic"]) for step in (1, 2)]
    assert not gan.training
    for part in ("to_target", "to_source", "judge_target", "judge_source"):
        names = [name for name in start if name.startswith(part)]
        assert any(not torch.equal(start[name], gan.state_dict()[name]) for name in names)


def test_a_step_of_the_generators_makes_the_judges_take_more_for_real() -> None:
    torch.manual_seed(0)
    gan = CycleGan(8, 1)
    source, target = images(0) / 127.5 - 1, images(1) / 127.5 - 1
    weights = list(gan.to_target.last.parameters())
    before, _ = generator_losses(gan, source, target, None)
    gradients = torch.autograd.grad(before["adversarial"], weights)
    score = gan.judge_target(gan.to_target(source)).mean()
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.sub_(0.05 * gradient / gradient.norm())
    assert generator_losses(gan, source, target, None)[0]["adversarial"] < before["adversarial"]
    assert gan.judge_target(gan.to_target(source)).mean() > score


def test_the_judges_learn_to_tell_the_domains_apart() -> None:
    losses: list[Mapping[str, float]] = []
    dark, light = random_patches(images(0, 4) * 0.2, 1, 16), random_patches(images(1, 4) * 0.2 + 200, 1, 16)
    train_cyclegan(dark, light, 25, progress=lambda _, terms: losses.append(terms))
    assert losses[-1]["judges"] < 0.6 * losses[0]["judges"]


def test_the_pool_gives_back_what_it_was_given() -> None:
    pool = ImagePool(3, seed=0)
    given_ones = [torch.full((1, 3, 1, 1), float(k)) for k in range(60)]
    back = [pool(image).flatten()[0].item() for image in given_ones]
    assert back[:3] == [0, 1, 2]
    assert len(pool.images) == 3
    assert all(got <= k for k, got in enumerate(back))
    assert 15 < sum(got < k for k, got in enumerate(back)) < 45
    kept = [image.flatten()[0].item() for image in pool.images]
    assert len(set(kept)) == 3
    assert not {got for got in back[3:] if back.count(got) == 1} & set(kept)  # what it gave away it has no longer


@settings(max_examples=10)
@given(st.integers(1, 20), st.integers(0, 50))
def test_patches_are_parts_of_the_images(side: int, step: int) -> None:
    numbered = torch.arange(2 * 3 * 9 * 12, dtype=torch.int32).view(2, 3, 9, 12)
    batch = random_patches(numbered, 3, side)(step)
    assert batch.shape == (3, 3, min(side, 9), min(side, 12))
    assert batch.is_floating_point()
    assert (batch.diff(dim=-1) == 1).all()
    assert (batch.diff(dim=-2) == 12).all()
    assert torch.equal(batch, random_patches(numbered, 3, side)(step))


def test_each_step_has_patches_of_its_own() -> None:
    batches = random_patches(images(0, 8, 24), 2, 16)
    assert not torch.equal(batches(0), batches(1))
    assert not torch.equal(batches(0), random_patches(images(0, 8, 24), 2, 16, seed=1)(0))
