import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, source_of, target_of
from torch.nn import functional

from paretoda.objectives import Mcc
from paretoda.objectives.target.mcc import class_confusion

SIZES = st.tuples(st.integers(1, 12), st.integers(2, 20))


def drawn(size, seed, scale=3.0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*size, dtype=torch.float64, generator=generator)


def certain(labels, classes):
    return 1e4 * functional.one_hot(torch.as_tensor(labels), classes).double()


def weights_of(logits, temperature):
    p = (logits / temperature).softmax(1)
    return 1 + torch.exp((p * p.log()).sum(1))


def by_hand(logits, temperature, weights):
    """The formula of the paper, class by class."""
    n, classes = logits.shape
    y = (logits / temperature).softmax(1)
    w = n * weights / weights.sum()
    confusion = [[sum(w[i] * y[i, j] * y[i, k] for i in range(n)) for k in range(classes)] for j in range(classes)]
    return sum(confusion[j][k] / sum(confusion[j]) for j in range(classes) for k in range(classes) if j != k) / classes


@pytest.mark.parametrize("classes", [2, 5, 65])
def test_the_closed_forms(classes):
    assert class_confusion(certain(range(classes), classes), 2.5).item() == pytest.approx(0, abs=1e-12)
    assert class_confusion(torch.zeros(7, classes).double(), 2.5).item() == pytest.approx((classes - 1) / classes)


def test_two_classes_that_are_confused_half_and_half_and_one_that_is_not():
    p = torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    assert class_confusion((p + 1e-30).log(), 1.0).item() == pytest.approx(1 / 3)


@given(st.tuples(st.integers(1, 6), st.integers(2, 4)), st.integers(0, 1000), st.sampled_from([0.5, 1.0, 2.5]))
def test_the_formula_of_the_paper(size, seed, temperature):
    logits = drawn(size, seed, 1.0)
    expected = by_hand(logits, temperature, weights_of(logits, temperature))
    assert class_confusion(logits, temperature).item() == pytest.approx(expected.item())


def test_certainty_is_that_of_the_tempered_predictions():
    logits = drawn((5, 3), 0)
    wrong = by_hand(logits, 2.5, weights_of(logits, 1.0))
    assert class_confusion(logits, 2.5).item() != pytest.approx(wrong.item(), abs=1e-4)


def test_the_weights_are_constants_to_the_gradient():
    logits = drawn((5, 3), 0).requires_grad_()
    found = torch.autograd.grad(class_confusion(logits, 2.5), logits)[0]
    expected = torch.autograd.grad(by_hand(logits, 2.5, weights_of(logits.detach(), 2.5)), logits)[0]
    torch.testing.assert_close(found, expected)
    moved = torch.autograd.grad(by_hand(logits, 2.5, weights_of(logits, 2.5)), logits)[0]
    assert not torch.allclose(found, moved, atol=1e-4)


@given(SIZES, st.integers(0, 1000), st.sampled_from([0.1, 3.0, 1e3]))
def test_it_lies_between_nothing_and_all_but_one_of_the_classes(size, seed, scale):
    assert -1e-12 <= class_confusion(drawn(size, seed, scale), 2.5).item() <= 1 - 1 / size[1] + 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_class_that_nothing_is_predicted_to_be_counts_as_confused_and_is_no_trouble(dtype):
    """With a small constant in the divisor it would count as clear, and one class for all would be perfect."""
    logits = certain([0, 0, 1], 4).to(dtype).requires_grad_()
    value = class_confusion(logits, 2.5)
    assert value.item() == pytest.approx(2 / 4)
    assert class_confusion(certain([1] * 6, 4).to(dtype), 2.5).item() == pytest.approx(3 / 4)
    assert torch.autograd.grad(value, logits)[0].isfinite().all()


def test_descent_lowers_it_on_the_target_alone():
    samples = Samples()
    source, target = samples.batch()
    objective = Mcc(6, 3)
    assert objective.temperature == 2.5
    value = objective(source, target)
    assert value.item() == class_confusion(target.logits, 2.5).item()
    step, none = torch.autograd.grad(value, [target.logits, source.logits], allow_unused=True)
    assert none is None
    moved = target_of(target.features, target.logits - step)
    assert objective(source_of(source.features, source.logits), moved).item() < value.item()


def test_a_temperature_without_sense_is_refused():
    assert math.isfinite(Mcc(6, 3, temperature=0.1).temperature)
    with pytest.raises(ValueError, match="temperature must be positive"):
        Mcc(6, 3, temperature=0.0)
