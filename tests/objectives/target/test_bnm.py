import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, source_of, target_of
from torch.nn import functional

from paretoda.objectives import Bnm
from paretoda.objectives.target.bnm import column_norm, nuclear_norm

SIZES = st.tuples(st.integers(1, 12), st.integers(2, 20))
FORMS = pytest.mark.parametrize("fast", [False, True])


def drawn(size, seed, scale=3.0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*size, dtype=torch.float64, generator=generator)


def certain(labels, classes):
    return 1e4 * functional.one_hot(torch.as_tensor(labels), classes).double()


def loss(objective, logits):
    features = torch.zeros(len(logits), 2)
    return objective(source_of(features, logits), target_of(features, logits))


@FORMS
@pytest.mark.parametrize("classes", [2, 5, 65])
def test_certain_and_balanced_predictions_lack_nothing(classes, fast):
    assert nuclear_norm(torch.eye(classes)).item() / classes == pytest.approx(1)  # -1 in the paper, before the shift
    assert loss(Bnm(2, classes, fast=fast), certain(range(classes), classes)).item() == pytest.approx(0, abs=1e-9)
    twice = certain([*range(classes)] * 2, classes)
    assert loss(Bnm(2, classes, fast=fast), twice).item() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("samples", "classes"), [(8, 4), (4, 4), (3, 5)])
def test_uniform_predictions_lack_all_but_the_root_of_n_over_k(samples, classes):
    uniform = torch.zeros(samples, classes, dtype=torch.float64)
    norm, most = math.sqrt(samples / classes), math.sqrt(min(samples, classes) * samples)
    assert nuclear_norm(uniform.softmax(1)).item() == pytest.approx(norm)
    assert loss(Bnm(2, classes), uniform).item() == pytest.approx((most - norm) / samples)
    rank = loss(Bnm(2, classes, per="rank"), uniform).item()
    assert rank == pytest.approx((most - norm) / min(samples, classes))


@FORMS
def test_one_class_for_all_lacks_something_although_every_prediction_is_certain(fast):
    collapsed = loss(Bnm(2, 4, fast=fast), certain([1] * 8, 4)).item()
    assert collapsed == pytest.approx((math.sqrt(4 * 8) - math.sqrt(8)) / 8)


@FORMS
@given(SIZES, st.integers(0, 1000), st.sampled_from([0.1, 3.0, 1e3]))
def test_it_is_never_negative_and_never_more_than_uniform_predictions_lack(fast, size, seed, scale):
    value = loss(Bnm(2, size[1], fast=fast), drawn(size, seed, scale)).item()
    most = math.sqrt(min(size) / size[0])
    assert -1e-12 <= value <= most
    if not fast:
        assert value <= most - 1 / math.sqrt(size[0] * size[1]) + 1e-12


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_for_certain_predictions_columns_are_as_good_as_singular_values(labels):
    predictions = certain(labels, 5).softmax(1)
    assert column_norm(predictions).item() == pytest.approx(nuclear_norm(predictions).item())


def test_with_fewer_samples_than_classes_only_the_longest_columns_count():
    predictions = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
    assert column_norm(predictions).item() == pytest.approx(0.5)


def test_the_gradient_of_the_norm_is_the_product_of_its_vectors():
    predictions = drawn((6, 4), 0).softmax(1).requires_grad_()
    left, _, right = torch.linalg.svd(predictions.detach(), full_matrices=False)
    found = torch.autograd.grad(nuclear_norm(predictions), predictions)[0]
    torch.testing.assert_close(found, left @ right)


@FORMS
@pytest.mark.parametrize("logits", [certain(range(4), 4), certain([1] * 4, 4), torch.zeros(5, 4), torch.zeros(1, 4)])
def test_equal_and_vanishing_singular_values_have_finite_gradients(logits, fast):
    logits = logits.clone().requires_grad_()
    value = loss(Bnm(2, 4, fast=fast), logits)
    assert value.isfinite()
    assert torch.autograd.grad(value, logits)[0].isfinite().all()


@FORMS
def test_descent_lowers_it_on_the_target_alone(fast):
    samples = Samples()
    source, target = samples.batch()
    objective = Bnm(6, 3, fast=fast)
    value = objective(source, target)
    step, none = torch.autograd.grad(value, [target.logits, source.logits], allow_unused=True)
    assert none is None
    assert objective(source, target_of(target.features, target.logits - step)).item() < value.item()


def test_another_divisor_is_refused():
    with pytest.raises(ValueError, match="per must be 'sample' or 'rank'"):
        Bnm(6, 3, per="class")
