"""PGA: its places, its gradient against finite formulas, and the plain sum as its limit."""

import copy

import pytest
import torch
from torch import nn

from paretoda.objectives import Coral, CrossEntropy
from paretoda.schemes import Linear
from paretoda.training.step import Step
from paretoda.training.strategies import Pga
from paretoda.training.strategies.pga import find_shift
from paretoda.types import Batch, Model


def make(scheme, seed=0, dropout=0.0):
    torch.manual_seed(seed)
    encoder = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Dropout(dropout))
    model = Model(encoder, nn.Linear(6, 3)).double()
    objectives = {"source": CrossEntropy(6, 3), "alignment": Coral(6, 3)}
    return Step(model, objectives, scheme, torch.optim.SGD(model.parameters(), lr=0.1))


def batch(seed=0):
    generator = torch.Generator().manual_seed(seed)
    index = torch.arange(8)
    source, target = torch.randn(2, 8, 5, generator=generator, dtype=torch.float64)
    return Batch(source, index % 3, target + 1, None, index, index, None)


def gradients(step):
    return [parameter.grad.clone() for parameter in step.model.parameters()]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_without_shifts_the_step_is_that_of_the_plain_sum(dropout):
    steps = make(Linear(), dropout=dropout), make(Pga(flatness=0, agreement=0), dropout=dropout)
    for number in range(3):
        for step in steps:
            torch.manual_seed(number)
            report = step(batch(number))
            assert report.names == ("source", "alignment")
    for one, other in zip(*(step.modules().state_dict().values() for step in steps), strict=True):
        torch.testing.assert_close(one, other)


def test_the_gradient_is_the_sum_of_the_gradients_at_the_shifted_places():
    step = make(Pga(flatness=0.3, agreement=0.2))
    given = batch()
    parameters = dict(step.model.named_parameters())
    slopes = []
    for name in step.objectives:
        found = torch.autograd.grad(step.loss(name, given), list(parameters.values()), allow_unused=True)
        slopes.append(
            [torch.zeros_like(p) if g is None else g for p, g in zip(parameters.values(), found, strict=True)]
        )
    lengths = [torch.cat([slope.flatten() for slope in own]).norm() for own in slopes]
    wanted = [torch.zeros_like(parameter) for parameter in parameters.values()]
    for place, name in enumerate(step.objectives):
        twin = copy.deepcopy(step)
        with torch.no_grad():
            for parameter, own, other in zip(twin.model.parameters(), slopes[place], slopes[1 - place], strict=True):
                parameter.add_(0.3 * own / lengths[place] - 0.2 * other / (lengths[0] * lengths[1]))
        found = torch.autograd.grad(twin.loss(name, given), list(twin.model.parameters()), allow_unused=True)
        wanted = [sum_so_far if g is None else sum_so_far + g for sum_so_far, g in zip(wanted, found, strict=True)]
    step.model.train()
    step.scheme.fill(step, given)
    for one, other in zip(gradients(step), wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_a_step_of_agreement_makes_gradients_more_parallel():
    """θ - η Σ_i ∇L_i(θ - γ g_j / (|g_i||g_j|)) has a larger cosine than the plain step, for small η and γ."""
    centres = torch.tensor([[1.0, 0.0], [0.0, 3.0]], dtype=torch.float64)
    curves = torch.tensor([[1.0, 4.0], [3.0, 0.5]], dtype=torch.float64)

    def slopes(place):
        return [curve * (place - centre) for centre, curve in zip(centres, curves, strict=True)]

    def cosine(place):
        return torch.nn.functional.cosine_similarity(*slopes(place), dim=0)

    start = torch.tensor([2.0, 2.5], dtype=torch.float64)
    own = [{"place": slope} for slope in slopes(start)]
    moved = [start + find_shift(own[i], [own[1 - i]], 0.0, 0.01)["place"] for i in range(2)]
    step = sum(curve * (place - centre) for place, centre, curve in zip(moved, centres, curves, strict=True))
    plain = sum(slopes(start))
    assert cosine(start - 1e-3 * step) > cosine(start - 1e-3 * plain)


def test_negative_options_and_a_single_loss_are_refused():
    for name in ("flatness", "agreement"):
        with pytest.raises(ValueError, match=f"{name} must be 0 or more"):
            Pga(**{name: -1})
    step = make(Linear())
    with pytest.raises(ValueError, match="choose a method or a target loss as well"):
        Step(step.model, {"source": CrossEntropy(6, 3)}, Pga(), step.optimiser)
