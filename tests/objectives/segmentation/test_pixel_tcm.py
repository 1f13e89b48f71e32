"""The target loss at pixels, as segmentation takes it: closed forms, and what changes nothing."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from paretoda.objectives.segmentation import make_pixel_target_loss
from paretoda.objectives.target.information import information
from paretoda.types import IGNORE, Source, Target

SEEDS = st.integers(0, 200)
FEW = settings(max_examples=20, deadline=None)


def tcm(classes=4, *, undecided=False, **options):
    """The loss of the table, of single batches unless said otherwise; undecided: discriminators are of one opinion."""
    torch.manual_seed(0)
    given = {"width": 8, "momentum": 0.0, **options}
    loss = make_pixel_target_loss("tcm", features=6, classes=classes, options=given).double()
    if undecided:
        torch.nn.init.zeros_(loss.inner.discriminators.last.weight)
        torch.nn.init.constant_(loss.inner.discriminators.last.bias, 0.3)
    return loss


def maps(seed=0, classes=4, size=(5, 7), images=2):
    """Both domains; a fifth of the source's pixels has no label."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(2, images, 6, *size, dtype=torch.float64, generator=generator)
    logits = 2 * torch.randn(2, images, classes, *size, dtype=torch.float64, generator=generator)
    labels = torch.randint(0, classes, (images, *size), generator=generator)
    labels = labels.masked_fill(torch.rand(labels.shape, generator=generator) < 0.2, IGNORE)
    index = torch.arange(images)
    return Source(features[0], logits[0], index, labels=labels), Target(features[1], logits[1], index)


def target_of(logits):
    features = torch.randn(len(logits), 6, *logits.shape[2:], dtype=torch.float64)
    return Target(features, logits, torch.arange(len(logits)))


def values(loss, source, target):
    """What the encoder lowers and what the discriminators lower."""
    return torch.stack([loss(source, target), loss.private_loss(source, target)])


@pytest.mark.parametrize("classes", [2, 11, 19])
def test_uniform_is_the_logarithm_of_the_classes_and_certain_and_balanced_is_zero(classes):
    loss = tcm(classes, undecided=True)
    source = maps(classes=classes)[0]
    uniform = target_of(torch.zeros(2, classes, 5, classes, dtype=torch.float64))
    assert loss(source, uniform).item() == pytest.approx(math.log(classes))
    rho = loss.inner.refined(*(maps.movedim(1, 3).flatten(0, 2) for maps in (uniform.features, uniform.logits)))
    torch.testing.assert_close(rho, torch.full_like(rho, 1 / classes))
    certain = 1e4 * functional.one_hot(torch.arange(classes), classes).double().T  # one column of pixels a class
    balanced = target_of(certain.view(1, classes, 1, classes).expand(2, classes, 5, classes))
    assert loss(source, balanced).item() == pytest.approx(0, abs=1e-12)
    collapsed = target_of(certain[:, :1].view(1, classes, 1, 1).expand(2, classes, 5, classes))
    assert loss(source, collapsed).item() == pytest.approx(math.log(classes))


@FEW
@given(SEEDS)
def test_discriminators_that_say_the_same_of_all_classes_leave_the_predictions_as_they_are(seed):
    source, target = maps(seed)
    log_p = target.logits.movedim(1, 3).flatten(0, 2).log_softmax(1)
    expected = math.log(4) - information(log_p).item()
    assert tcm(undecided=True)(source, target).item() == pytest.approx(expected)


@FEW
@given(SEEDS, st.sampled_from([0.0, 0.9]))
def test_the_order_of_the_pixels_changes_nothing(seed, momentum):
    source, target = maps(seed)
    order = torch.randperm(70, generator=torch.Generator().manual_seed(seed))

    def moved(found):
        """Pixels change places, also from image to image."""
        return found.movedim(1, -1).flatten(0, 2)[order].unflatten(0, (2, 5, 7)).movedim(-1, 1)

    labels = source.labels.flatten()[order].view(2, 5, 7)
    shuffled = Source(moved(source.features), moved(source.logits), source.index, labels=labels)
    turned = Target(moved(target.features), moved(target.logits), target.index)
    one, other = tcm(momentum=momentum), tcm(momentum=momentum)
    for _ in range(2):  # the second time with what was remembered
        torch.testing.assert_close(values(one, source, target), values(other, shuffled, turned))


@FEW
@given(SEEDS, st.sampled_from([0.0, 0.9]))
def test_what_stands_at_ignored_pixels_of_the_source_changes_nothing(seed, momentum):
    source, target = maps(seed)
    ignored = (source.labels == IGNORE).unsqueeze(1)
    features = (source.features + 50 * ignored * torch.rand_like(source.features)).requires_grad_()
    spoiled = Source(features, source.logits.masked_fill(ignored, 9.0), source.index, labels=source.labels)
    one, other = tcm(momentum=momentum), tcm(momentum=momentum)
    for _ in range(2):
        torch.testing.assert_close(values(one, source, target), values(other, spoiled, target))
    (felt,) = torch.autograd.grad(tcm(detach=False)(spoiled, target), features)
    assert felt.any()
    assert not (felt * ignored).any()


@FEW
@given(SEEDS, st.integers(2, 19))
def test_it_is_never_negative_and_the_literal_loss_has_the_same_gradient(seed, classes):
    source, target = maps(seed, classes)
    logits = target.logits.requires_grad_()
    one, literal = (tcm(classes, paper_literal=literal)(source, target) for literal in (False, True))
    assert -1e-12 <= one.item() <= math.log(classes)
    assert one.item() - literal.item() == pytest.approx(math.log(classes))
    torch.testing.assert_close(*(torch.autograd.grad(value, logits)[0] for value in (one, literal)))


def test_no_more_pixels_are_looked_at_than_said():
    source, target = maps(size=(40, 40))
    loss, seen = tcm(most=500), []
    loss.inner.discriminators.register_forward_hook(lambda _module, given, _result: seen.append(len(given[0])))
    values(loss, source, target)
    assert seen == [1000, 1000]
    assert make_pixel_target_loss("tcm", features=6, classes=4).most == 4096
