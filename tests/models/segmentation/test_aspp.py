"""The classifier of pixels is the sum of its branches; the head holds all classifiers and knows which one predicts."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from paretoda.models.segmentation.segmenter import ASPP, PixelHead


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_published_numbers_of_parameters():
    with torch.device("meta"):
        assert count(ASPP(2048, 19)) == 1_400_908
        assert count(ASPP(1024, 19)) == 700_492


@settings(max_examples=20, deadline=None)
@given(rates=st.lists(st.integers(1, 7), min_size=1, max_size=5), data=st.data())
def test_it_is_the_sum_of_its_branches_so_zeroing_all_but_one_leaves_that_one(rates, data):
    classifier = ASPP(3, 4, rates).double()
    x = torch.randn(2, 3, 5, 6, dtype=torch.float64)
    torch.testing.assert_close(classifier(x), sum(branch(x) for branch in classifier.branches))
    kept = data.draw(st.integers(0, len(rates) - 1))
    for number, branch in enumerate(classifier.branches):
        if number != kept:
            nn.init.zeros_(branch.weight)
            nn.init.zeros_(branch.bias)
    torch.testing.assert_close(classifier(x), classifier.branches[kept](x))
    assert classifier(x).shape == (2, 4, 5, 6)


@pytest.mark.parametrize("rate", [1, 2, 6, 12, 18, 24])
def test_an_impulse_reaches_its_rate_exactly(rate):
    classifier = ASPP(1, 2, (rate,))
    nn.init.zeros_(classifier.branches[0].bias)
    x = torch.zeros(1, 1, 51, 51)
    x[0, 0, 25, 25] = 1
    seen = {(int(row) - 25, int(column) - 25) for row, column in classifier(x)[0, 0].nonzero()}
    assert seen == {(row, column) for row in (-rate, 0, rate) for column in (-rate, 0, rate)}


def test_weights_start_with_a_deviation_of_a_hundredth_and_biases_as_usual():
    torch.manual_seed(0)
    classifier = ASPP(256, 19)
    for branch in classifier.branches:
        assert branch.weight.std().item() == pytest.approx(0.01, rel=0.03)
        assert abs(branch.weight.mean().item()) < 3e-4
        assert 0 < branch.bias.abs().max() <= (256 * 9) ** -0.5
    assert [branch.dilation[0] for branch in classifier.branches] == [6, 12, 18, 24]


@pytest.mark.parametrize("rates", [(), (0,), (3, -1)])
def test_rates_must_be_positive(rates):
    with pytest.raises(ValueError, match="rates must be"):
        ASPP(3, 4, rates)


def test_the_flat_vector_has_all_weights_and_biases_and_is_attached():
    classifier = ASPP(3, 4, (1, 2))
    flat = classifier.flat()
    assert flat.shape == (count(classifier),)
    flat.square().sum().backward()
    for parameter in classifier.parameters():
        torch.testing.assert_close(parameter.grad, 2 * parameter.detach())


def test_one_classifier_predicts_alone():
    head = PixelHead((5,), 3, (1, 2))
    x = torch.randn(2, 5, 4, 4)
    torch.testing.assert_close(head(x), head.main(x))
    assert head.extra_logits(x) == ()


def test_with_two_levels_each_classifier_sees_its_own_channels_only():
    head = PixelHead((2, 5), 3, (1, 2))
    x = torch.randn(2, 7, 4, 4, requires_grad=True)
    (auxiliary,) = head.extra_logits(x)
    torch.testing.assert_close(head(x), head.main(x[:, 2:]))
    torch.testing.assert_close(auxiliary, head.auxiliary(x[:, :2]))
    (main_slope,) = torch.autograd.grad(head(x).square().sum(), x)
    (auxiliary_slope,) = torch.autograd.grad(auxiliary.square().sum(), x)
    assert not main_slope[:, :2].any()
    assert main_slope[:, 2:].any()
    assert auxiliary_slope[:, :2].any()
    assert not auxiliary_slope[:, 2:].any()


def test_a_source_loss_without_the_auxiliary_term_leaves_its_classifier_alone():
    head = PixelHead((2, 5), 3, (1,))
    x, labels = torch.randn(2, 7, 4, 4), torch.randint(3, (2, 4, 4))
    loss = nn.functional.cross_entropy(head(x), labels)
    (loss + 0.0 * nn.functional.cross_entropy(head.extra_logits(x)[0], labels)).backward()
    assert not any(parameter.grad.any() for parameter in head.auxiliary.parameters())
    assert all(parameter.grad.any() for parameter in head.main.parameters())


def test_two_classifiers_predict_by_the_sum_of_their_logits_and_differ():
    head = PixelHead((5,), 3, (1, 2), classifiers=2)
    x = torch.randn(2, 5, 4, 4)
    first, second = head.extra_logits(x)
    torch.testing.assert_close(head(x), first + second)
    assert not torch.allclose(first, second)
    torch.testing.assert_close(first, head.main(x))
    assert not torch.equal(head.main.flat(), head.second.flat())
