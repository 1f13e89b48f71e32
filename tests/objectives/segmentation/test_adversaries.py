"""AdaSegNet and AdvEnt: whose label is whose, what is seen, and who learns."""

import math

import pytest
import torch
from objectives.samples import silent
from objectives.segmentation.scenes import Scenes
from torch.nn import functional

from paretoda.objectives.parts.differentiation import call_frozen
from paretoda.objectives.segmentation import AdaSegNet, AdvEnt
from paretoda.objectives.segmentation.map_adversary import MapDiscriminator
from paretoda.objectives.segmentation.minent import self_information

BOTH = pytest.mark.parametrize("kind", [AdaSegNet, AdvEnt])


def made(kind, **options):
    torch.manual_seed(0)
    return kind(6, 4, width=8, **options).double()


@pytest.mark.parametrize("layers", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("size", [(32, 40), (33, 47)])
def test_every_layer_halves_the_map(layers, size):
    network = MapDiscriminator(4, layers, 4)
    assert network(torch.zeros(2, 4, *size)).shape == (2, 1, size[0] >> layers, size[1] >> layers)


def test_the_published_discriminator_has_its_parameters_and_sizes():
    with torch.device("meta"):
        network = MapDiscriminator(19, 5, 64)
        assert sum(p.numel() for p in network.parameters()) == 2_781_121
        for size, smaller in (((512, 1024), (16, 32)), ((120, 160), (3, 5))):
            assert network(torch.empty(1, 19, *size)).shape == (1, 1, *smaller)


def test_a_map_that_is_too_small_is_refused():
    with pytest.raises(ValueError, match="5 layers need maps of 32 pixels or more, got 31x40: use fewer"):
        MapDiscriminator(4, 5, 4)(torch.zeros(1, 4, 31, 40))


@BOTH
def test_a_discriminator_that_knows_nothing(kind):
    scenes = Scenes("two levels")
    objective = made(kind, levels=2)
    for network in objective.discriminators:
        for parameter in network.layers[-1].parameters():
            torch.nn.init.zeros_(parameter)
    source, target = scenes.batch()
    assert objective(source, target).item() == pytest.approx((1e-3 + 2e-4) * math.log(2))
    assert objective.private_loss(source, target).item() == pytest.approx(2 * math.log(2))


@BOTH
def test_least_squares(kind):
    scenes = Scenes()
    source, target = scenes.batch()
    objective = made(kind, least_squares=True, strength=0.01)
    (network,) = objective.discriminators
    of_source, of_target = (network(objective.discriminator_input(domain.logits)) for domain in (source, target))
    assert objective(source, target).item() == pytest.approx(0.01 * (of_target - 1).square().mean().item())
    private = ((of_source - 1).square().mean() + of_target.square().mean()) / 2
    assert objective.private_loss(source, target).item() == pytest.approx(private.item())


@BOTH
def test_descent_takes_the_target_for_the_source(kind):
    """Positive scores mean "source"; the discriminator's own step does the opposite."""
    scenes = Scenes()
    source, target = scenes.batch()
    objective = made(kind)
    (network,) = objective.discriminators

    def score(logits):
        return network(objective.discriminator_input(logits)).mean().item()

    step = torch.autograd.grad(objective(source, target) / 1e-3, target.logits)[0]
    assert score(target.logits - 0.1 * step / step.abs().max()) > score(target.logits)
    before = score(target.logits), score(source.logits)
    optimiser = torch.optim.Adam(objective.parameters(), lr=1e-3)
    objective.private_loss(source, target).backward()
    optimiser.step()
    assert score(source.logits) - score(target.logits) > before[1] - before[0]


@BOTH
def test_a_step_of_the_network_makes_the_target_look_more_like_the_source(kind):
    scenes = Scenes()
    objective = made(kind)
    (network,) = objective.discriminators

    def score():
        return network(objective.discriminator_input(scenes.target().logits)).mean().item()

    before, weights = score(), list(scenes.model.parameters())
    step = torch.autograd.grad(objective(*scenes.batch()), weights)
    with torch.no_grad():
        for weight, change in zip(weights, step, strict=True):
            weight.sub_(1e-3 * change / max(each.abs().max() for each in step))
    assert score() > before


@BOTH
def test_the_discriminator_learns_maps_that_differ(kind):
    scenes = Scenes()
    with torch.no_grad():
        source, target = scenes.batch()
    objective = made(kind)
    optimiser = torch.optim.Adam(objective.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        losses.append(objective.private_loss(source, target))
        losses[-1].backward()
        optimiser.step()
    assert losses[-1].item() < 0.5 * losses[0].item()


@BOTH
def test_the_encoders_loss_leaves_no_gradient_with_the_discriminator(kind):
    scenes = Scenes("two levels")
    objective = made(kind, levels=2)
    objective(*scenes.batch()).backward()
    assert all(p.grad is None for p in objective.parameters())
    assert all(p.requires_grad for p in objective.parameters())
    assert scenes.model.auxiliary.weight.grad is not None


def test_they_see_probabilities_and_self_information():
    scenes = Scenes()
    _, target = scenes.batch()
    p = target.logits.softmax(1)
    seen = {AdaSegNet: p, AdvEnt: -p * p.log2() / math.log2(4)}
    for kind, expected in seen.items():
        objective = made(kind)
        torch.testing.assert_close(objective.discriminator_input(target.logits), expected)
        score = call_frozen(objective.discriminators[0], expected, "batch")
        expected_loss = 1e-3 * functional.softplus(-score).mean().item()
        assert objective(*scenes.batch()).item() == pytest.approx(expected_loss)


@BOTH
def test_levels_have_discriminators_of_their_own(kind):
    scenes = Scenes("two levels")
    source, target = scenes.batch()
    one, two = made(kind, strength=1.0, auxiliary=0.0, levels=2), made(kind, strength=0.0, auxiliary=1.0, levels=2)
    assert silent(one(source, target), [target.extra_logits[0]])
    assert silent(two(source, target), [target.logits])
    assert not silent(two(source, target), [target.extra_logits[0]])
    with pytest.raises(ValueError, match="reads 2 outputs of the network, and it has 1"):
        one(*Scenes().batch())
    with pytest.raises(ValueError, match="levels must be 1 or more"):
        made(kind, levels=0)


def test_enlarged_maps_have_the_size_of_the_inputs():
    scenes = Scenes()
    source, target = scenes.batch()
    objective = made(AdaSegNet, enlarge=True, layers=1)
    larger = functional.interpolate(target.logits, size=(32, 40), mode="bilinear", align_corners=True)
    score = objective.discriminators[0](larger.softmax(1))
    assert score.shape[-2:] == (16, 20)
    assert objective(source, target).item() == pytest.approx(1e-3 * functional.softplus(-score).mean().item())
    assert len(made(AdaSegNet, enlarge=True).discriminators[0].layers) == 5
    assert len(made(AdaSegNet).discriminators[0].layers) == 3


def test_self_information_is_largest_where_p_is_one_over_e():
    p = torch.linspace(1e-6, 1 - 1e-6, 9999, dtype=torch.float64)
    maps = torch.stack([p, 1 - p]).log().view(1, 2, -1, 1)
    information = self_information(maps)[0, 0, :, 0]
    assert p[information.argmax()].item() == pytest.approx(1 / math.e, abs=1e-3)
    assert information.max().item() == pytest.approx(math.log2(math.e) / (math.e * math.log2(2)), abs=1e-6)
