"""One network for the whole front: right at the corners and between them, honest about what it was told."""

import json

import pytest
import torch
from training.points import Bowl

from paretoda.models.classifier import describe, from_description, make_model, parameter_groups
from paretoda.models.hypernetwork import Hypernetwork as Generator
from paretoda.models.hypernetwork import Modulation
from paretoda.training.step import Step
from paretoda.training.strategies import Hypernetwork
from paretoda.types import Batch, Objective

CORNERS = [[2.0, -1.0, 0.0], [-1.0, 1.0, 3.0], [0.0, 0.0, -2.0]]
LOSSES = ("source", "alignment", "target")


def test_trained_on_random_preferences_it_has_the_minimum_of_every_one():
    """ℓ_i = ½ |x - a_i|²: the minimum of Σ r_i ℓ_i is Σ r_i a_i, and at a corner that of its loss."""
    torch.manual_seed(0)
    corners = torch.tensor(CORNERS)
    network = Generator(3, [torch.zeros(3)])
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(600):
        ray = torch.distributions.Dirichlet(torch.full((3,), 0.2)).sample()
        network.prefer(ray)
        loss = (ray * 0.5 * (network()[0] - corners).square().sum(1)).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    for ray in (*torch.eye(3), torch.full((3,), 1 / 3), torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.2, 0.3, 0.5])):
        network.prefer(ray)
        assert (network()[0] - ray @ corners).norm() < 0.2, ray


def test_every_preference_moves_the_hypernetwork_and_has_the_start_at_first():
    torch.manual_seed(0)
    start = [torch.randn(4, 2), torch.randn(4)]
    network = Generator(3, start)
    for ray in torch.eye(3):
        network.prefer(ray)
        found = network()
        assert [tensor.shape for tensor in found] == [(4, 2), (4,)]
        assert all(torch.equal(one, other) for one, other in zip(found, start, strict=True))
        slopes = torch.autograd.grad(sum(t.square().sum() for t in found), [*network.base, *network.ways])
        assert all(slope.any() for slope in slopes)


@pytest.mark.parametrize("preference", [[1 / 3] * 3, [1.0, 0.0, 0.0], [0.2, 0.0, 0.8]])
def test_a_step_moves_the_equal_preference_as_an_ordinary_network_and_others_a_little_further(preference):
    """A gradient g moves B by g and A u by g |u|², u = z(r) - z(1/m): nothing for equal weights, under 2 elsewhere."""
    torch.manual_seed(0)
    network = Generator(3, [torch.zeros(5)])
    network.prefer(torch.tensor(preference))
    wanted = torch.arange(5.0)
    (0.5 * (network()[0] - wanted).square().sum()).backward()
    with torch.no_grad():
        for parameter in [*network.base, *network.ways]:
            parameter.sub_(0.01 * parameter.grad)
    further = (network()[0] / (0.01 * wanted))[1:] - 1
    if len(set(preference)) == 1:
        torch.testing.assert_close(further, torch.zeros(4), rtol=0, atol=1e-5)
    else:
        assert further.min() > 0.3
        assert further.max() < 2


def test_preferences_stay_apart_whatever_they_have_in_common():
    """A strong pull that all preferences share once taught the small network one answer for all of them."""
    torch.manual_seed(0)
    network = Generator(3, [torch.zeros(20)])
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    for index in range(100):
        network.prefer(torch.eye(3)[index % 3])
        optimiser.zero_grad()
        (0.5 * (network()[0] - 5).square().sum()).backward()
        optimiser.step()
    answers = torch.stack([network._answer(ray) for ray in torch.eye(3)])
    assert torch.nn.functional.cosine_similarity(answers[:, None], answers[None], dim=2).min() < 0.5


class Centre(Bowl):
    """A bowl in float32 over the features."""

    def __init__(self, centre):
        super().__init__(centre)
        self.centre, self.curvature = self.centre.float(), self.curvature.float()


def front(steps, **options):
    """A classifier trained as a run trains it; its objectives are bowls over three features."""
    torch.manual_seed(0)
    model = make_model("mlp", (5,), 2, bottleneck=3, losses=LOSSES)
    objectives = dict(zip(LOSSES, map(Centre, CORNERS), strict=True))
    step = Step(model, objectives, Hypernetwork(**options), torch.optim.SGD(parameter_groups(model, 0.02)))
    inputs, index = torch.randn(16, 5), torch.arange(16)
    batch = Batch(inputs, index % 2, inputs, None, index, index, None)
    return step, batch, [step(batch) for _ in range(steps)]


def test_a_trained_network_lowers_at_each_corner_the_loss_of_that_corner():
    step, batch, reports = front(300)
    table = []
    for corner in torch.eye(3).tolist():
        step.model.prefer(corner)
        step.model.train()
        with torch.no_grad():
            table.append(step.view(batch).losses)
    for place, name in enumerate(LOSSES):
        values = [float(row[name]) for row in table]
        assert min(range(3), key=values.__getitem__) == place
        assert values[place] < 0.2 * float(reports[0].losses[place])


def test_the_network_is_told_the_preference_that_weighs_its_losses_and_afterwards_all_count_equally():
    seen = []

    class Watching(Objective):
        def forward(self, source, target):  # noqa: ARG002
            seen.append(step.model.head.generated.preference.tolist())
            assert torch.equal(step.model.encoder.modulation.generated.preference, step.model.head.generated.preference)
            return target.features.square().mean()

    step, batch, _ = front(0)
    step.objectives["target"] = Watching()
    alphas = [step(batch).alpha.tolist() for _ in range(5)]
    for alpha, told in zip(alphas, seen, strict=True):
        assert told == pytest.approx(alpha, abs=1e-6)
        assert sum(alpha) == pytest.approx(1.0)
    assert len({tuple(alpha) for alpha in alphas}) == 5
    assert step.model.head.generated.preference.tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("concentration", [0.2, 2.0])
def test_preferences_are_drawn_from_the_dirichlet_distribution(concentration):
    """Mean 1/m and variance (1/m)(1 - 1/m) / (m c + 1)."""
    step, batch, _ = front(0, concentration=concentration)
    torch.manual_seed(1)
    drawn = torch.tensor([step.scheme.fill(step, batch).alpha.tolist() for _ in range(200)])
    torch.testing.assert_close(drawn.mean(0), torch.full((3,), 1 / 3), rtol=0, atol=0.08)
    expected = (1 / 3) * (2 / 3) / (3 * concentration + 1)
    torch.testing.assert_close(drawn.var(0), torch.full((3,), expected), rtol=0.3, atol=0)


def test_what_batchnorm_remembers_is_true_for_every_preference():
    """The modulation stands behind the last BatchNorm: nothing before it depends on the preference."""
    step, batch, _ = front(20)
    layers = list(step.model.encoder)
    assert isinstance(layers[-1], Modulation)
    step.model.eval()
    with torch.no_grad():
        before = []
        for corner in torch.eye(3).tolist():
            step.model.prefer(corner)
            before.append(step.model.encoder[:-1](batch.target))
    assert torch.equal(before[0], before[1])
    assert torch.equal(before[0], before[2])


@pytest.mark.parametrize(("backbone", "shape"), [("mlp", (6,)), ("cnn", (1, 16, 16)), ("lenet", (1, 28, 28))])
def test_the_description_makes_the_same_network_again(backbone, shape):
    torch.manual_seed(0)
    model = make_model(backbone, shape, 4, losses=LOSSES).eval()
    for part in model.modules():
        if isinstance(part, Generator):
            for way in part.ways:
                torch.nn.init.normal_(way)
    again = from_description(json.loads(json.dumps(describe(model)))).eval()
    again.load_state_dict(model.state_dict())
    inputs, answers = torch.randn(3, *shape), []
    for preference in ([1, 0, 0], [2, 1, 1], [0.5, 0.25, 0.25]):
        model.prefer(preference)
        again.prefer(preference)
        answers.append(model(inputs))
        assert torch.equal(again(inputs), answers[-1])
    assert not torch.allclose(answers[0], answers[1])
    assert torch.equal(answers[1], answers[2]), "only proportions matter"


@pytest.mark.parametrize("preference", [(), (1, 2), (1, 1, 1, 1), (1, -1, 1), (0, 0, 0), (1, float("nan"), 1)])
def test_a_preference_that_is_none_is_refused(preference):
    model = make_model("mlp", (6,), 4, losses=LOSSES)
    with pytest.raises(ValueError, match="a number for each of source, alignment, target, none negative and not all 0"):
        model.prefer(preference)


def test_what_makes_no_sense_is_told():
    with pytest.raises(ValueError, match="concentration must be positive"):
        Hypernetwork(concentration=0)
    with pytest.raises(ValueError, match="train one with --scheme hypernetwork"):
        make_model("mlp", (6,), 4).prefer((1, 1, 1))
    model = make_model("mlp", (5,), 2, bottleneck=3)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    bowls = dict(zip(LOSSES, map(Centre, CORNERS), strict=True))
    with pytest.raises(ValueError, match="make it with make_model"):
        Step(model, bowls, Hypernetwork(), optimiser)
    alone = make_model("mlp", (5,), 2, losses=("source",))
    with pytest.raises(ValueError, match="choose a method or a target loss as well"):
        Step(alone, {"source": bowls["source"]}, Hypernetwork(), optimiser)
    bowls["alignment"].encoder_updates = 4
    with pytest.raises(ValueError, match="'alignment' loss is lowered 4 times alone"):
        Step(make_model("mlp", (5,), 2, losses=LOSSES), bowls, Hypernetwork(), optimiser)
