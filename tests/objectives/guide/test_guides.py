import math

import pytest
import torch
from objectives.samples import Samples, adversary_fitted, silent, source_of, target_of
from torch.nn import functional

from paretoda.objectives import (
    GUIDES,
    AgreementGuide,
    Information,
    InformationGuide,
    NeighbourGuide,
    PrototypeGuide,
    Tcm,
    TcmGuide,
)
from paretoda.objectives.guide.pseudo_labels import (
    agreement_cross_entropy,
    class_means,
    nearest_prototype,
    neighbour_prediction,
)
from paretoda.objectives.parts.neighbours import Bank
from paretoda.types import Snapshot


def rows(*values):
    return torch.tensor(values, dtype=torch.float64)


def snapshot(source, target):
    """Of these whole sets; nothing else is looked at."""
    return Snapshot(source, source, target, target, None, lambda: iter(()))


def test_class_means_are_over_the_members_of_a_class():
    means = class_means(rows([0, 2], [4, 4], [1, 1]), torch.tensor([0, 0, 2]), 3)
    assert means[0].tolist() == [2, 3]
    assert means[1].isnan().all()
    assert means[2].tolist() == [1, 1]


def test_the_nearest_prototype_is_that_of_the_largest_cosine():
    prototypes = rows([1, 0], [0, 5])
    assert nearest_prototype(rows([9, 8], [0.1, 0.2], [-1, -2]), prototypes).tolist() == [0, 1, 0]


def test_a_class_without_source_samples_is_nobodys_nearest():
    prototypes = rows([math.nan, math.nan], [1, 0], [0, 1])
    assert nearest_prototype(rows([-1, -2], [0, 0]), prototypes).tolist() == [1, 1]


def test_prototypes_label_the_held_out_samples():
    source = source_of(rows([1, 0], [3, 0], [0, 1]), torch.zeros(3, 2), torch.tensor([0, 0, 1]))
    held_out = target_of(rows([2, 1], [1, 2]), rows([1, -1], [3, 0]))
    guide = PrototypeGuide(2, 2).double()
    guide.refresh(snapshot(source, held_out))
    expected = functional.cross_entropy(held_out.logits, torch.tensor([0, 1]))
    assert guide(source, held_out).item() == pytest.approx(expected.item())


def test_prototypes_come_from_the_whole_source_not_from_the_batch():
    samples = Samples()
    guide = PrototypeGuide(6, 3).double()
    guide.refresh(samples.snapshot())
    means = class_means(samples.source().features, samples.labels, 3)
    torch.testing.assert_close(guide.prototypes(), means.detach())


def test_neighbours_are_those_of_the_largest_cosine():
    bank = functional.normalize(rows([1, 0], [2, 0.1], [0, 1], [-1, 0]), dim=1)
    predictions = rows([0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0, 1])
    assert neighbour_prediction(rows([5, 0]), bank, predictions, 2)[0].tolist() == pytest.approx([0.7, 0.3])
    everyone = neighbour_prediction(rows([5, 0]), bank, predictions, 10)[0].tolist()
    assert everyone == pytest.approx([0.4, 0.6])


def test_large_held_out_sets_are_searched_in_parts():
    generator = torch.Generator().manual_seed(0)
    features, bank = torch.randn(2500, 3, generator=generator), torch.randn(20, 3, generator=generator)
    bank, predictions = functional.normalize(bank, dim=1), torch.rand(20, 4, generator=generator)
    found = neighbour_prediction(features, bank, predictions, 3)
    parts = [neighbour_prediction(part, bank, predictions, 3) for part in (features[:7], features[7:])]
    torch.testing.assert_close(found, torch.cat(parts))


@pytest.mark.parametrize(
    ("neighbours", "label"),
    [
        ([[0.1, 0], [0.1, 0], [-9, 9]], 1),  # two hesitant votes against a certain one
        ([[3, 0], [3, 0], [-90, 90]], 0),  # logits would be led by the largest
    ],
)
def test_neighbours_label_by_their_mean_probability(neighbours, label):
    target = target_of(rows([1, 0], [1, 0.1], [1, -0.1]), rows(*neighbours))
    held_out = target_of(rows([2, 0]), rows([0.3, 0]))
    guide = NeighbourGuide(2, 2, k=3).double()
    guide.refresh(snapshot(source_of(target.features, target.logits), target))
    expected = functional.cross_entropy(held_out.logits, torch.tensor([label]))
    assert guide(None, held_out).item() == pytest.approx(expected.item())


def test_a_long_feature_is_no_nearer():
    target = target_of(rows([100, 100], [1, 0]), rows([9, 0], [0, 9]))
    guide = NeighbourGuide(2, 2, k=1).double()
    guide.refresh(snapshot(source_of(target.features, target.logits), target))
    assert guide.labels(rows([1, 0.1])).tolist() == [1]


def test_a_bank_is_a_copy_without_a_graph():
    bank, kept = Bank(2), torch.ones(3, 2, requires_grad=True)
    bank.replace(kept)
    with torch.no_grad():
        kept.zero_()
    assert bank().tolist() == [[1, 1]] * 3
    assert not bank().requires_grad
    assert repr(bank) == "Bank(rows=3)"


def test_neighbours_are_ten():
    assert NeighbourGuide(2, 2).k == 10
    with pytest.raises(ValueError, match="k must be"):
        NeighbourGuide(2, 2, k=0)


def test_agreement_counts_only_samples_with_one_label():
    logits = rows([2, 0], [0, 1], [5, -5]).requires_grad_()
    loss, share = agreement_cross_entropy(logits, torch.tensor([0, 1, 0]), torch.tensor([0, 0, 0]))
    expected = functional.cross_entropy(logits[[0, 2]], torch.tensor([0, 0]))
    assert loss.item() == pytest.approx(expected.item())
    assert share.item() == pytest.approx(2 / 3)
    assert not torch.autograd.grad(loss, logits)[0][1].any()


def test_where_none_agree_there_is_nothing_to_follow():
    logits = rows([2, 0], [0, 1]).requires_grad_()
    loss, share = agreement_cross_entropy(logits, torch.tensor([0, 1]), torch.tensor([1, 0]))
    assert loss.item() == 0
    assert share.item() == 0
    assert not torch.autograd.grad(loss, logits)[0].any()


def test_agreement_is_of_its_two_parts():
    samples = Samples()
    guides = [make(6, 3).double() for make in (AgreementGuide, PrototypeGuide, NeighbourGuide)]
    for guide in guides:
        guide.refresh(samples.snapshot())
    held_out = samples.held_out()
    one, other = (guide.labels(held_out.features) for guide in guides[1:])
    loss, share = agreement_cross_entropy(held_out.logits, one, other)
    assert guides[0].share.isnan()
    assert guides[0](samples.source(), held_out).item() == loss.item()
    assert guides[0].share.item() == share.item()
    assert 0 < share.item() <= 1


@pytest.mark.parametrize("name", ["prototypes", "neighbours", "agreement"])
def test_pseudo_labels_are_constants_from_the_features_of_this_step(name):
    samples = Samples()
    guide = GUIDES[name](features=6, classes=3).double()
    guide.refresh(samples.snapshot())
    held_out = samples.held_out()
    loss = guide(samples.source(), held_out)
    assert not silent(loss, [held_out.logits])
    assert torch.autograd.grad(loss, held_out.logits, retain_graph=True)[0].isfinite().all()
    labelled = guide.prototypes if name == "agreement" else guide
    assert (labelled.labels(held_out.features) != labelled.labels(-held_out.features)).any()
    detached = target_of(held_out.features.detach().requires_grad_(), held_out.logits)
    assert silent(guide(samples.source(), detached), [detached.features])


@pytest.mark.parametrize("name", ["prototypes", "neighbours", "agreement"])
def test_a_guide_that_has_seen_nothing_says_so(name):
    samples = Samples()
    with pytest.raises(RuntimeError, match="refresh"):
        GUIDES[name](features=6, classes=3).double()(samples.source(), samples.held_out())


@pytest.mark.parametrize("name", ["prototypes", "neighbours", "agreement"])
def test_what_was_seen_is_kept_as_a_copy_without_a_graph(name):
    samples = Samples()
    whole = samples.snapshot()
    guide = GUIDES[name](features=6, classes=3).double()
    guide.refresh(whole)
    before = guide(samples.source(), samples.held_out()).item()
    for domain in (whole.source, whole.target):
        domain.features.normal_()
        domain.logits.normal_()
    assert guide(samples.source(), samples.held_out()).item() == before
    guide.refresh(Samples(seed=4).snapshot())
    assert guide(samples.source(), samples.held_out()).item() != before
    assert not any(buffer.requires_grad for buffer in guide.buffers())


def test_a_bank_of_another_width_is_refused():
    samples = Samples()
    guide = NeighbourGuide(6, 3).double()
    guide.refresh(samples.snapshot())
    with pytest.raises(RuntimeError, match="size mismatch"):
        NeighbourGuide(5, 3).load_state_dict(guide.state_dict())


def test_the_tcm_guide_asks_the_discriminators_of_the_target_loss():
    samples = Samples()
    torch.manual_seed(0)
    target_loss = Tcm(6, 3, width=8).double()
    guide, literal = TcmGuide(6, 3, target_loss), TcmGuide(6, 3, target_loss, paper_literal=True)
    early = guide(samples.source(), samples.held_out()).item()
    adversary_fitted(target_loss, samples, steps=30)
    late = guide(samples.source(), samples.held_out()).item()
    assert late != early
    rho = target_loss.refined(samples.held_out().features, samples.held_out().logits)
    mean = rho.mean(0)
    printed = (mean * mean.log()).sum() - (rho * rho.log()).sum(1).mean()
    assert late == pytest.approx(printed.item() + math.log(3))
    assert literal(samples.source(), samples.held_out()).item() == pytest.approx(printed.item())
    assert not list(guide.parameters())
    assert not guide.state_dict()


@pytest.mark.parametrize("other", [None, Information(6, 3)])
def test_the_tcm_guide_needs_the_tcm_loss(other):
    with pytest.raises(ValueError, match="choose that one too"):
        TcmGuide(6, 3, other)


def test_the_information_guide_is_the_target_loss_on_held_out_samples():
    samples = Samples()
    source, held_out = samples.source(), samples.held_out()
    assert InformationGuide(6, 3)(source, held_out).item() == Information(6, 3)(source, held_out).item()
