import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, source_of
from torch.nn import functional

from paretoda.objectives import Aad
from paretoda.objectives.parts.neighbours import find_nearest
from paretoda.objectives.target.aad import attract_and_disperse
from paretoda.types import Target


def drawn(n, classes, seed, scale=3.0):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(n, classes, dtype=torch.float64, generator=generator)).softmax(1)


def certain(labels, classes):
    return functional.one_hot(torch.as_tensor(labels), classes).double()


def refreshed(samples, **options):
    objective = Aad(samples.features, samples.classes, **options).double()
    objective.refresh(samples.snapshot())
    return objective


@given(st.integers(1, 9), st.integers(2, 5), st.integers(1, 3), st.integers(0, 99))
def test_the_value_is_the_papers_sum_over_pairs_plus_a_constant(n, classes, k, seed):
    p = drawn(n, classes, seed)
    q = drawn(n * k, classes, seed + 1).reshape(n, k, classes)
    paper = sum(
        -sum(p[i] @ q[i, j] for j in range(k)) + 0.3 * sum(p[i] @ p[m] for m in range(n) if m != i) for i in range(n)
    )
    constant = k - 0.3 * max(0, n / classes - 1)
    assert attract_and_disperse(p, q, 0.3).item() == pytest.approx(paper.item() / n + constant)


@given(st.integers(1, 20), st.integers(2, 6), st.integers(0, 99), st.sampled_from([0.1, 3.0, 1e3]))
def test_it_is_never_negative(n, classes, seed, scale):
    p, q = drawn(n, classes, seed, scale), drawn(2 * n, classes, seed, scale).reshape(n, 2, classes)
    assert attract_and_disperse(p, q, 1.0).item() >= -1e-12


@pytest.mark.parametrize(("labels", "classes"), [(range(3), 3), ([0, 1, 2] * 4, 3), (range(3), 8), ([0], 2)])
def test_certain_and_diverse_predictions_with_neighbours_that_agree_lack_nothing(labels, classes):
    p = certain(list(labels), classes)
    assert attract_and_disperse(p, p.unsqueeze(1).expand(-1, 4, -1), 1.0).item() == pytest.approx(0, abs=1e-12)


def test_one_class_for_all_costs_the_dispersion_and_nothing_else():
    p = certain([1] * 8, 4)
    q = p.unsqueeze(1).expand(-1, 3, -1)
    assert attract_and_disperse(p, q, 0.0).item() == pytest.approx(0)
    assert attract_and_disperse(p, q, 0.5).item() == pytest.approx(0.5 * (7 - (8 / 4 - 1)))


def test_the_gradient_attracts_to_the_neighbours_and_disperses_from_the_others():
    p = drawn(5, 3, 0).requires_grad_()
    q = drawn(10, 3, 1).reshape(5, 2, 3)
    found = torch.autograd.grad(attract_and_disperse(p, q, 0.7), p)[0]
    others = p.detach().sum(0) - p.detach()
    torch.testing.assert_close(found, (-q.sum(1) + 2 * 0.7 * others) / 5)


def test_the_neighbours_are_those_of_a_plain_search_in_the_whole_target():
    samples = Samples(target=40)
    objective = refreshed(samples, k=3)
    snapshot = samples.snapshot()
    batch = torch.tensor([7, 31, 0])
    expected = snapshot.target.logits.softmax(1)[find_nearest(snapshot.target.features, 3)[batch]]
    torch.testing.assert_close(objective.neighbours(samples.target(batch)), expected)


def test_with_few_samples_all_others_are_neighbours():
    samples = Samples(target=3)
    objective = refreshed(samples, k=5)
    assert objective.neighbours(samples.target()).shape == (3, 2, samples.classes)
    assert refreshed(Samples(target=1)).neighbours(Samples(target=1).target()).shape == (1, 0, 3)


def test_a_training_batch_updates_its_own_samples_in_the_banks_and_no_others():
    samples = Samples(target=12)
    objective = refreshed(samples)
    features, logits = torch.randn(2, 6, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)
    target = Target(features, logits, torch.tensor([4, 9]))
    source = source_of(features, logits)
    before = objective.bank().clone(), objective.predictions().clone()
    assert objective.eval().private_loss(source, target) is None
    assert torch.equal(objective.bank(), before[0])
    assert objective.train().private_loss(source, target) is None
    torch.testing.assert_close(objective.bank()[[4, 9]], functional.normalize(features, dim=1))
    torch.testing.assert_close(objective.predictions()[[4, 9]], logits.softmax(1))
    rest = [i for i in range(12) if i not in (4, 9)]
    assert torch.equal(objective.bank()[rest], before[0][rest])
    assert torch.equal(objective.predictions()[rest], before[1][rest])


def test_an_update_of_the_banks_leaves_the_gradient_of_the_same_step_alone():
    samples = Samples(target=12)
    objective = refreshed(samples, k=3)
    target = samples.target()
    alone = torch.autograd.grad(objective(samples.source(), target), target.logits, retain_graph=True)[0]
    loss = objective(samples.source(), target)
    objective.private_loss(samples.source(), Target(-target.features, -target.logits, target.index))
    torch.testing.assert_close(torch.autograd.grad(loss, target.logits)[0], alone)


def test_the_dispersion_decays_and_the_loss_waits_for_the_source():
    samples = Samples()
    objective = refreshed(samples, beta=2.0, strength=0.5)
    for progress, strength, weight in ((0.1, 0.0, 1 / 4), (0.3, 0.25, 1 / 16), (0.5, 0.5, 1 / 36), (1.0, 0.5, 1 / 121)):
        objective.advance(progress)
        assert (objective.strength, objective.weight) == pytest.approx((strength, weight))
        target = samples.target()
        expected = strength * attract_and_disperse(target.logits.softmax(1), objective.neighbours(target), weight)
        assert objective(samples.source(), target).item() == pytest.approx(expected.item())
    constant = refreshed(samples, beta=0.0)
    constant.advance(1.0)
    assert constant.weight == 1


def test_it_must_have_seen_the_target():
    samples = Samples()
    with pytest.raises(RuntimeError, match="refresh"):
        Aad(samples.features, samples.classes)(samples.source(), samples.target())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "1 or more"),
        ({"beta": -1.0}, "0 or more"),
        ({"strength": 0.0}, "positive"),
        ({"start": 0.5}, "shares"),
    ],
)
def test_options_without_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Aad(4, 3, **options)
