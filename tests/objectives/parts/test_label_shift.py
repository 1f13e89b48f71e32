"""How frequent the target's classes are: exact where nothing else differs, careful where it does, and remembered."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, source_of, target_of

from paretoda.objectives import Information, Tcm
from paretoda.objectives.guide.information import InformationGuide, TcmGuide
from paretoda.objectives.parts.class_prior import ClassPrior, LabelShift, frequency_ratios
from paretoda.objectives.target.information import missing_information


def chance(seed):
    return torch.Generator().manual_seed(seed)


def frequencies(seed, classes):
    found = 0.2 + torch.rand(classes, dtype=torch.float64, generator=chance(seed))
    return found / found.sum()


def confusion(seed, classes, sure=0.5):
    """Prediction (row) given label (column), right at least half of the time."""
    other = torch.rand(classes, classes, dtype=torch.float64, generator=chance(seed + 1))
    return sure * torch.eye(classes, dtype=torch.float64) + (1 - sure) * other / other.sum(0)


def problem(seed, classes):
    """Joint distribution of the source, mean prediction of the target, and the true ratios."""
    source, target = (frequencies(seed + place, classes) for place in (10, 20))
    rule = confusion(seed, classes)
    return rule * source, rule @ target, target / source


@given(st.integers(0, 10_000), st.integers(2, 12))
def test_the_ratios_are_exact_where_only_frequencies_differ(seed, classes):
    joint, predicted, ratios = problem(seed, classes)
    torch.testing.assert_close(frequency_ratios(joint, predicted, 1e-7), ratios.clamp(0.1, 10), rtol=1e-4, atol=1e-5)


@given(st.integers(0, 10_000), st.integers(2, 12), st.floats(0.01, 3))
def test_they_minimise_what_they_should(seed, classes, strength):
    joint, predicted, _ = problem(seed, classes)
    bound = strength * (joint.sum(0).max() * joint.sum(1).max()).sqrt()
    assert bound >= strength * torch.linalg.matrix_norm(joint, 2) * (1 - 1e-12)
    stacked = torch.cat([joint, bound * torch.eye(classes, dtype=torch.float64)])
    wanted = torch.cat([predicted, bound.expand(classes)])
    oracle = torch.linalg.lstsq(stacked, wanted[:, None]).solution[:, 0]
    torch.testing.assert_close(frequency_ratios(joint, predicted, strength), oracle.clamp(0.1, 10))


@given(st.integers(0, 10_000), st.integers(2, 12), st.floats(0.01, 3))
def test_they_are_1_where_nothing_differs_and_go_along_with_the_classes(seed, classes, strength):
    joint, predicted, _ = problem(seed, classes)
    torch.testing.assert_close(frequency_ratios(joint, joint.sum(1), strength), torch.ones(classes).double())
    order = torch.randperm(classes, generator=chance(seed))
    moved = frequency_ratios(joint[order][:, order], predicted[order], strength)
    torch.testing.assert_close(moved, frequency_ratios(joint, predicted, strength)[order])


@given(st.integers(0, 10_000), st.integers(2, 12), st.floats(0.02, 1), st.floats(1.5, 5))
def test_what_holds_them_near_1_does_so(seed, classes, strength, more):
    joint, predicted, _ = problem(seed, classes)
    near, far = ((frequency_ratios(joint, predicted, s) - 1).norm() for s in (more * strength, strength))
    assert near <= far + 1e-12


def test_classes_that_no_prediction_tells_apart_are_left_as_they_are():
    joint = torch.full((4, 4), 1 / 16, dtype=torch.float64)  # rank one: predictions know nothing
    predicted = torch.tensor([0.3, 0.2, 0.25, 0.25], dtype=torch.float64)
    torch.testing.assert_close(frequency_ratios(joint, predicted), torch.ones(4).double())


def drawn(count, shares, seed, sharp=3.0):
    """Logits that say the label, with noise, and the labels."""
    labels = torch.multinomial(shares, count, replacement=True, generator=chance(seed))
    noise = torch.randn(count, len(shares), generator=chance(seed + 1))
    return sharp * torch.nn.functional.one_hot(labels, len(shares)) + noise, labels


def batch(seed, source_shares, target_shares, count=200):
    own, labels = drawn(count, source_shares, seed)
    other, _ = drawn(count, target_shares, seed + 500_000)
    features = torch.zeros(count, 2)
    return source_of(features, own, labels), target_of(features, other)


ROAD, SKY = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([0.2, 0.5, 0.3])


def test_the_prior_moves_from_the_source_to_the_target():
    objective = Information(2, 3, prior=ROAD.tolist(), shift=True)
    torch.testing.assert_close(objective.prior.log.exp(), ROAD)
    for step in range(100):
        objective.private_loss(*batch(2 * step, ROAD, SKY))
    moved = objective.prior.log.exp()
    assert moved.sum().item() == pytest.approx(1)
    assert (moved - SKY).abs().sum() < 0.5 * (ROAD - SKY).abs().sum()  # held near the source, it goes half the way
    source, target = batch(9999, ROAD, SKY)
    expected = missing_information(target.logits.log_softmax(1), moved.log())
    torch.testing.assert_close(objective(source, target), expected)


def test_one_batch_alone_counts_in_full():
    shift = LabelShift(3, momentum=0.9)
    source, target = batch(0, ROAD, SKY)
    shift.learn(source.logits, source.labels, target.logits)
    told = source.logits.softmax(1)
    joint = torch.stack([told[source.labels == label].sum(0) for label in range(3)], 1) / len(told)
    expected = frequency_ratios(joint, target.logits.softmax(1).mean(0)).log()
    torch.testing.assert_close(shift.log_ratios, expected, rtol=1e-4, atol=1e-5)


def test_old_batches_are_forgotten():
    shift = LabelShift(3, momentum=0.8)
    for step in range(60):
        source, target = batch(2 * step, ROAD, SKY if step < 30 else ROAD)
        shift.learn(source.logits, source.labels, target.logits)
    assert shift.log_ratios.abs().max() < 0.2


def test_forward_and_evaluation_remember_nothing_and_numbers_stay_as_given():
    still = Information(2, 3, prior=[2, 1, 1])
    moving = Information(2, 3, shift=True)
    source, target = batch(0, ROAD, SKY)
    moving(source, target)
    moving.eval().private_loss(source, target)
    still.private_loss(source, target)
    torch.testing.assert_close(moving.prior.log.exp(), torch.full((3,), 1 / 3))
    torch.testing.assert_close(still.prior.log.exp(), torch.tensor([0.5, 0.25, 0.25]))
    assert ClassPrior(3, None).log is None


def test_tcm_and_its_guide_read_the_moved_prior_and_the_state_has_it():
    samples = Samples()
    source, target = samples.batch()
    torch.manual_seed(0)
    objective = Tcm(6, 3, width=8, prior=[3, 2, 1], shift=True).double()
    guides = [TcmGuide(6, 3, objective), InformationGuide(6, 3, objective)]
    before = [guide(source, target).item() for guide in guides]
    objective.private_loss(source, target)
    assert objective.prior.shift.log_ratios.abs().max() > 1e-3
    objective.prior.shift.log_ratios.copy_(torch.tensor([1.0, -1.0, 0.0]))
    after = [guide(source, target).item() for guide in guides]
    assert all(abs(one - other) > 1e-3 for one, other in zip(before, after, strict=True))
    again = Tcm(6, 3, **objective.settings()).double()
    again.load_state_dict(objective.state_dict())
    torch.testing.assert_close(again.prior.shift.log_ratios, objective.prior.shift.log_ratios)
    with pytest.raises(ValueError, match="paper_literal"):
        Tcm(6, 3, shift=True, paper_literal=True)


def test_what_is_not_finite_stays_so_without_an_error_of_its_own():
    shift = LabelShift(3)
    source, target = batch(0, ROAD, SKY)
    shift.learn(torch.full_like(source.logits, torch.nan), source.labels, target.logits)
    assert shift.log_ratios.isnan().all()
