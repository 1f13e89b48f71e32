import math

import pytest
import torch
from objectives.samples import Samples, adversary_fitted, gradients, silent
from torch import nn

from paretoda.objectives import CrossEntropy, Mcd
from paretoda.objectives.alignment.mcd import disagreement, imbalance
from paretoda.schemes import SCHEMES
from paretoda.training.step import Step
from paretoda.types import Batch, Model


def mcd(samples, **options):
    torch.manual_seed(0)
    return Mcd(features=samples.features, classes=samples.classes, hidden=16, **{"dropout": 0.0} | options).double()


def opinions(objective, source, target):
    """The two classifiers' probabilities on the target and logits on the source, in one batch."""
    n = len(source.features)
    logits = objective.classifiers(torch.cat([source.features, target.features]), "batch")
    return logits[:, n:].softmax(2), logits[:, :n]


@pytest.mark.parametrize("classes", [2, 7, 65])
def test_classifiers_that_are_sure_of_different_classes_disagree_by_two_over_k(classes):
    one, other = torch.eye(classes)[[0, 0]], torch.eye(classes)[[1, 1]]
    assert disagreement(one, other).item() == pytest.approx(2 / classes)
    assert disagreement(one, one).item() == 0


def test_an_even_prediction_is_the_least_imbalance():
    assert imbalance(torch.eye(4)).item() == pytest.approx(math.log(4), abs=1e-5)
    assert imbalance(torch.eye(4)[[0, 0, 1]]).item() > math.log(4) + 1


def test_the_formulas_of_the_specification():
    samples = Samples()
    objective = mcd(samples, strength=3.0, balance=0.2)
    source, target = samples.batch()
    (one, other), known = opinions(objective, source, target)
    apart = sum((one - other).abs().flatten().tolist()) / (21 * 3)
    errors = [-z.log_softmax(1)[torch.arange(9), source.labels].mean().item() for z in known]
    uneven = [-(p.mean(0) + 1e-6).log().mean().item() for p in (one, other)]
    assert objective(source, target).item() == pytest.approx(3 * apart)
    expected = sum(errors) + 0.2 * sum(uneven) - 3 * apart
    assert objective.private_loss(source, target).item() == pytest.approx(expected)


def test_classifiers_that_are_the_same_have_nothing_to_dispute():
    samples = Samples()
    objective = mcd(samples)
    objective.classifiers.second.load_state_dict(objective.classifiers.first.state_dict())
    assert objective(*samples.batch()).item() == 0


def test_the_classifiers_raise_what_the_encoder_lowers():
    samples = Samples()
    objective = mcd(samples, strength=5.0)
    start = objective(*samples.batch()).item()
    adversary_fitted(objective, samples, steps=100, lr=0.02)
    before = objective(*samples.batch())
    assert before.item() > start
    (_, _), known = opinions(objective, *samples.batch())
    assert (known.argmax(2) == samples.labels).all()  # they know the source all the same
    for parameter, gradient in zip(samples.body(), gradients(before, samples.body()), strict=True):
        parameter.data -= 1e-4 * gradient
    assert objective(*samples.batch()).item() < before.item()


def test_the_models_head_gets_nothing():
    samples = Samples()
    assert silent(mcd(samples)(*samples.batch()), samples.heads())


def test_less_than_one_update_is_refused():
    with pytest.raises(ValueError, match="encoder_updates"):
        Mcd(features=4, classes=3, encoder_updates=0)


class Recorded(Mcd):
    """Writes down its value whenever it is asked for."""

    def forward(self, source, target):
        loss = super().forward(source, target)
        self.seen.append(loss.item())
        return loss


def taken(updates, move_classifiers=True):
    """A step on a small network, and everything before and after it."""
    torch.manual_seed(0)
    model = Model(nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6)), nn.Linear(6, 3)).double()
    objective = Recorded(6, 3, hidden=16, dropout=0.0, strength=10.0, encoder_updates=updates).double()
    objective.seen = []
    groups = [{"params": model.parameters(), "lr": 0.02}]
    groups.append({"params": objective.parameters(), "lr": 0.02 if move_classifiers else 0.0})
    optimiser = torch.optim.SGD(groups, momentum=0.9, weight_decay=0.1 if move_classifiers else 0.0)
    objectives = {"source": CrossEntropy(6, 3), "alignment": objective}
    step = Step(model, objectives, SCHEMES["linear"](), optimiser)
    source, target = torch.randn(9, 5).double(), torch.randn(9, 5).double() + 1
    index = torch.arange(9)
    batch = Batch(source, index % 3, target, None, index, index, None)
    return step, batch, objective


def state(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def test_further_updates_move_the_encoder_and_nothing_else():
    """The paper's third step: the classifiers, the head and what BatchNorm remembers stay as the first update left."""
    once, batch, _ = taken(1)
    once(batch)
    often, _, objective = taken(4)
    often(batch)
    assert len(objective.seen) == 4
    for one, other in zip(once.modules().state_dict().items(), often.modules().state_dict().items(), strict=True):
        moved = one[0].startswith("model.encoder") and "running" not in one[0] and "num_batches" not in one[0]
        assert torch.equal(one[1], other[1]) != moved, one[0]


def test_further_updates_lower_the_discrepancy():
    step, batch, objective = taken(5, move_classifiers=False)
    report = step(batch)
    assert report.losses[1] == pytest.approx(objective.seen[0])
    assert objective.seen == sorted(objective.seen, reverse=True)
    assert objective.seen[-1] < 0.95 * objective.seen[1]
