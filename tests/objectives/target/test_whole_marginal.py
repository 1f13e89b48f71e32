"""With `marginal="whole"` TCM has the mean prediction of the whole target, as Eq. 5 is printed."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, gradients

from paretoda.objectives import Tcm
from paretoda.objectives.target.information import information


def tcm(samples, **options):
    """TCM whose refined predictions do not depend on the batch, after a refresh."""
    torch.manual_seed(0)
    objective = Tcm(features=samples.features, classes=samples.classes, width=8, **options).double().eval()
    if objective.refreshes:
        objective.refresh(samples.snapshot())
    return objective


def batches(samples, size=7):
    return [samples.target(order) for order in torch.arange(21).split(size)]


@given(st.integers(0, 100))
def test_the_mean_over_batches_is_equation_5_of_the_whole_target(seed):
    samples = Samples(seed=seed, target=21, classes=3 + seed % 4)
    objective, literal = tcm(samples, marginal="whole"), tcm(samples, marginal="whole", paper_literal=True)
    target = samples.target()
    printed = -information(objective.log_refined(target.features, target.logits))
    losses = [literal(samples.source(), batch) for batch in batches(samples)]
    mean = torch.stack(losses).mean()
    assert mean.item() == pytest.approx(printed.item())
    for left, right in zip(gradients(mean, samples.body()), gradients(printed, samples.body()), strict=True):
        torch.testing.assert_close(left, right)
    shifted = [objective(samples.source(), batch).item() for batch in batches(samples)]
    assert shifted == pytest.approx([loss.item() + math.log(samples.classes) for loss in losses])
    assert min(shifted) >= 0


def test_the_batches_own_marginals_see_less_information():
    samples = Samples()
    objective, target = tcm(samples), samples.target()
    whole = information(objective.log_refined(target.features, target.logits)).item()
    own = [math.log(3) - objective(samples.source(), batch).item() for batch in batches(samples)]
    assert sum(own) / 3 < whole - 1e-3


def test_it_is_uniform_before_the_first_refresh_and_is_saved_with_the_model():
    samples = Samples()
    fresh = Tcm(samples.features, samples.classes, width=8, marginal="whole").double()
    assert fresh.marginal.probabilities.tolist() == pytest.approx([1 / 3] * 3)
    refreshed = tcm(samples, marginal="whole")
    target = samples.target()
    wanted = refreshed.refined(target.features, target.logits).mean(0)
    torch.testing.assert_close(refreshed.marginal.probabilities, wanted)
    again = Tcm(samples.features, samples.classes, **refreshed.settings()).double()
    again.load_state_dict(refreshed.state_dict())
    torch.testing.assert_close(again.marginal.probabilities, wanted)
    assert not Tcm(samples.features, samples.classes).refreshes, "whoever does not ask for it has no whole passes"


def test_a_running_mean_beside_it_and_an_unknown_marginal_are_refused():
    with pytest.raises(ValueError, match="give momentum=0 beside it"):
        Tcm(4, 3, marginal="whole", momentum=0.9)
    with pytest.raises(ValueError, match="marginal must be 'batch' or 'whole', got 'all'"):
        Tcm(4, 3, marginal="all")
