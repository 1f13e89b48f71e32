"""Schemes that read loss values: an adversarial alignment, whose loss is 0 or negative, does not take over."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from run.conftest import blobs

import paretoda
from paretoda import adapt
from paretoda.core.problem import SMALLEST_LOSS, Problem, ProblemError, add_offsets, reads_values
from paretoda.errors import SettingsError
from paretoda.objectives import Dann, Mdd
from paretoda.objectives.alignment.dann import divergence
from paretoda.objectives.alignment.mdd import margin_disparity
from paretoda.run.compatibility import UNSUITED
from paretoda.schemes import DWA, FAMO, MGDA, SCHEMES, Averaged, Calibrated, Every, GradNorm, Linear, Uncertainty
from paretoda.tasks.settings import make_settings

VALUED = {"epo", "pmtl", "gradnorm", "dwa", "uncertainty", "famo", "stch"}
LEARNED = ("gradnorm", "dwa", "uncertainty", "famo", "stch")
scores = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6).map(torch.tensor)


def test_the_schemes_that_read_values_say_so():
    assert {name for name, make in SCHEMES.items() if reads_values(make())} == VALUED
    assert reads_values(MGDA(normalise="loss"))
    assert not reads_values(Calibrated(MGDA()))
    assert all(reads_values(wrap(MGDA(normalise="loss+"))) for wrap in (Averaged, Calibrated, Every))


@given(scores, scores)
def test_the_value_of_a_discriminator_lies_between_that_of_a_coin_and_twice_that(source, target):
    offset = Dann(features=2, classes=2, hidden=4).offset
    value = add_offsets(np.array([divergence(source, target).item()]), (offset,))[0]
    assert offset == math.log(2)
    assert offset <= value <= 2 * offset + 1e-6


@given(st.floats(0.2, 8), st.integers(0, 2**31 - 1), st.floats(0, 50))
def test_the_value_of_a_second_classifier_is_bounded_by_the_entropy_of_the_margin(margin, seed, size):
    generator = torch.Generator().manual_seed(seed)
    logits = size * torch.randn(10, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(3, (10,), generator=generator)
    objective = Mdd(features=2, classes=3, hidden=4, margin=margin)
    share = margin / (1 + margin)
    entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
    assert objective.offset == pytest.approx(entropy)
    parts = logits[:5], labels[:5], logits[5:], labels[5:]
    loss = objective.strength * (margin_disparity(*parts, margin).item() + (1 + margin) * entropy)
    value = add_offsets(np.array([loss]), (objective.offset,))[0]
    assert entropy - 1e-9 <= value <= entropy * (1 + objective.ceiling * (1 + margin)) + 1e-9


@pytest.mark.parametrize("method", ["dann", "cdan", "mdd", "jada", "dta"])
@pytest.mark.parametrize("scheme", LEARNED)
def test_no_scheme_forgets_the_source_for_a_value_that_says_nothing(method, scheme):
    if (scheme, method) in UNSUITED:
        return
    x, y, t, _ = blobs()
    settings = {"method": method, "target_loss": "none", "scheme": scheme, "bottleneck": 8, "batch_size": 16}
    run = adapt((x, y), t, steps=60, select="last", reference=False, device="cpu", **settings)
    weights = np.array([[line["weights"][name] for name in ("source", "alignment")] for line in run.history])
    assert weights[:, 0].min() > 0.04
    assert method == "dta" or weights[:, 1].max() < 3  # the loss of dta is small, and its weight may be large


@pytest.mark.parametrize("scheme", sorted(VALUED))
def test_in_an_own_loop_a_negative_loss_needs_an_offset(scheme):
    weight = torch.ones(2, requires_grad=True)
    losses = {"source": weight.square().sum(), "alignment": -weight.sum()}
    with pytest.raises(ValueError, match="the loss of 'alignment' is -2, and this scheme reads loss values"):
        paretoda.backward(losses, shared=[weight], scheme=SCHEMES[scheme]())
    assert weight.grad is None
    report = paretoda.backward(losses, shared=[weight], scheme=SCHEMES[scheme](), offsets={"alignment": 0.5})
    assert report.losses.tolist() == [2.0, -2.0]
    assert np.isfinite(report.alpha).all()


def test_offsets_change_values_and_no_gradient():
    seen = []

    class Spy:
        guided, valued = False, True

        def __call__(self, problem, /):
            seen.append((problem.losses.tolist(), problem.values.tolist()))
            return Linear()(problem)

    weight = torch.ones(2, requires_grad=True)
    paretoda.backward([weight.sum(), -weight.sum()], shared=[weight], scheme=Spy(), offsets={"loss 1": 0.5})
    assert seen == [([2.0, SMALLEST_LOSS], [2.0, pytest.approx(0.5)])]
    assert weight.grad.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="offsets names 'loss 2', but the losses are loss 0"):
        paretoda.backward([weight.sum()], shared=[weight], scheme=Linear(), offsets={"loss 2": 1.0})
    with pytest.raises(ProblemError, match="0 or more"):
        paretoda.backward([weight.sum()], shared=[weight], scheme=Linear(), offsets={"loss 0": -1.0})
    with pytest.raises(ProblemError, match=r"offsets must have shape \(1,\)"):
        Problem([[1.0]], [1.0], offsets=(1.0, 1.0))


def test_calibration_measures_offsets_in_the_same_unit_as_losses():
    one = Calibrated(FAMO())(Problem(np.diag([4.0, 9.0]), [1.0, 0.5], offsets=(0.0, 0.7)))
    other = Calibrated(FAMO())(Problem(np.diag([4.0, 900.0]), [1.0, 5.0], offsets=(0.0, 7.0)))
    assert one.alpha * [1, 1] == pytest.approx(other.alpha * [1, 10])


@pytest.mark.parametrize("make", [FAMO, Uncertainty, DWA, GradNorm])
def test_a_loss_that_begins_late_has_not_risen_from_nothing(make):
    """Losses of other people's loops have no offset while they are 0."""
    scheme = make()
    for step in range(120):
        alpha = scheme(Problem(np.eye(2), [1.0, 0.0 if step < 50 else 1.0])).alpha
        assert alpha == pytest.approx([0.5, 0.5], abs=0.02), step


@pytest.mark.parametrize(("scheme", "method"), UNSUITED)
def test_what_does_not_suit_is_refused_in_one_sentence(scheme, method):
    with pytest.raises(SettingsError, match=f"the scheme '{scheme}' .* take --scheme linear"):
        make_settings({"scheme": scheme, "method": method})
