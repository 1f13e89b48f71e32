import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from objectives.samples import Samples, gradients, silent, source_of, target_of
from torch.nn import functional

from paretoda.objectives import Dta
from paretoda.objectives.alignment.dta import adversarial_mask, divergences
from paretoda.types import Target


def wide(n=40, width=60, classes=5, seed=0):
    """A target of many positive features before a linear head, and that head."""
    torch.manual_seed(seed)
    head = torch.nn.Linear(width, classes).double()
    features = torch.rand(n, width, dtype=torch.float64, requires_grad=True)
    return Target(features, head(features), torch.arange(n), head=head), head


def test_the_divergence_is_that_of_torch_and_from_the_first_to_the_second():
    one, other = torch.randn(2, 6, 4, dtype=torch.float64)
    expected = functional.kl_div(other.log_softmax(1), one.softmax(1), reduction="none").sum(1)
    torch.testing.assert_close(divergences(one, other), expected)
    assert divergences(one, one).abs().max().item() == pytest.approx(0, abs=1e-15)
    p, q = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.9, 0.1]])
    assert divergences(p.log(), q.log()).item() == pytest.approx(0.510826, abs=1e-6)
    assert divergences(q.log(), p.log()).item() == pytest.approx(0.368064, abs=1e-6)


def test_the_most_harmful_units_are_dropped_and_the_rest_made_up_for():
    slopes = torch.tensor([[-3.0, 5.0, -1.0, -2.0], [1.0, 2.0, -0.5, 3.0], [0.0, 0.0, 0.0, 0.0]])
    expected = torch.tensor([[0.0, 2.0, 2.0, 0.0], [4 / 3, 4 / 3, 0.0, 4 / 3], [1.0, 1.0, 1.0, 1.0]])
    torch.testing.assert_close(adversarial_mask(slopes, 2), expected)
    assert torch.equal(adversarial_mask(slopes, 0), torch.ones(3, 4))


@given(st.integers(0, 1000), st.integers(0, 11))
def test_a_mask_drops_no_more_than_it_may_and_has_mean_1(seed, count):
    slopes = torch.randn(7, 12, generator=torch.Generator().manual_seed(seed))
    mask = adversarial_mask(slopes, count)
    assert ((mask == 0).sum(1) <= count).all()
    assert not mask[slopes >= 0].eq(0).any()
    torch.testing.assert_close(mask.mean(1), torch.ones(7))


def test_the_formula_of_the_specification():
    target, head = wide()
    objective = Dta(features=60, classes=5, share=0.1, strength=2.0).double()
    torch.manual_seed(1)
    mask = objective.mask(target)
    assert ((mask == 0).sum(1) <= 6).all()
    assert (mask == 0).sum(1).float().mean() > 5
    z = head(mask * target.features)
    p, q = target.logits.softmax(1), z.softmax(1)
    torch.manual_seed(1)
    loss = objective(source_of(target.features, target.logits), target)
    expected = 2 * (p * (p / q).log()).mean()  # over samples and classes
    assert loss.item() == pytest.approx(expected.item())
    parameters = [target.features, *head.parameters()]
    for one, other in zip(gradients(loss, parameters), gradients(expected, parameters), strict=True):
        torch.testing.assert_close(one, other)  # into the masked and into the clean prediction


def test_dropping_what_matters_hurts_more_than_dropping_at_random():
    target, head = wide(n=200)
    objective = Dta(features=60, classes=5, share=0.1).double()
    mask = objective.mask(target)
    chance = adversarial_mask(-torch.rand(200, 60, dtype=torch.float64), 6)
    hurt, luck = (divergences(target.logits, head(m * target.features)).mean().item() for m in (mask, chance))
    assert hurt > 2 * luck


def test_the_share_grows_with_the_training_from_none_and_is_never_none_after():
    objective = Dta(features=60, classes=5, share=0.1)
    assert objective.count == 6
    counts = []
    for progress in (0.0, 1e-6, 0.5, 1.0):
        objective.advance(progress)
        counts.append(objective.count)
    assert counts == [0, 1, 3, 6]
    assert Dta(features=2, classes=5, share=0.99).count == 1


def test_where_nothing_is_dropped_nothing_changes():
    target, _ = wide()
    objective = Dta(features=60, classes=5).double()
    objective.advance(0.0)
    loss = objective(source_of(target.features, target.logits), target)
    assert loss.item() == 0
    assert silent(loss, [target.features])


def test_the_head_learns_from_it_and_the_source_does_not_matter():
    samples = Samples()
    objective = Dta(samples.features, samples.classes).double()
    source, target = samples.batch()
    torch.manual_seed(0)
    loss = objective(source, target)
    assert not silent(loss, samples.heads())
    torch.manual_seed(0)
    assert objective(source_of(-source.features, source.logits), target).item() == loss.item()
    assert objective.private_loss(source, target) is None


@pytest.mark.parametrize("options", [{"share": 0.0}, {"share": 1.0}, {"noise": 0.0}, {"features": 1}])
def test_what_cannot_be_dropped_is_refused(options):
    with pytest.raises(ValueError, match=r"between 0 and 1|2 or more"):
        Dta(**{"features": 4, "classes": 3} | options)


def test_without_a_head_one_sentence_says_what_to_do():
    features, logits = torch.randn(3, 4), torch.randn(3, 3)
    with pytest.raises(ValueError, match="give Source and Target their `head`"):
        Dta(features=4, classes=3)(source_of(features, logits), target_of(features, logits))
