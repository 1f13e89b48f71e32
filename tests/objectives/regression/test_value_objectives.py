"""The losses of regression in closed form, its guide, and what its tables may contain."""

from types import SimpleNamespace

import pytest
import torch

from paretoda.objectives import ALIGNMENTS
from paretoda.objectives.regression import (
    VALUE_GUIDES,
    VALUE_LOSSES,
    VALUE_METHODS,
    VALUE_TARGET_LOSSES,
    HuberError,
    NeighbourValues,
    SquaredError,
)
from paretoda.types import Source, Target


def domains(seed=0):
    torch.manual_seed(seed)
    source = Source(torch.randn(9, 6), torch.randn(9, 1), torch.arange(9), labels=torch.randn(9))
    return source, Target(torch.randn(7, 6), torch.randn(7, 1), torch.arange(7))


def test_the_losses_are_the_mean_square_and_hubers():
    source, target = domains()
    errors = (source.logits[:, 0] - source.labels).abs()
    assert SquaredError(6, 1)(source, target).item() == pytest.approx(errors.square().mean().item())
    huber = torch.where(errors <= 1, errors.square() / 2, errors - 0.5).mean()
    assert HuberError(6, 1)(source, target).item() == pytest.approx(huber.item())


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (table, name)
        for table in (VALUE_METHODS, VALUE_TARGET_LOSSES)
        for name, factory in table.items()
        if factory is not None
    ],
    ids=str,
)
def test_no_part_reads_labels_or_logits_of_either_domain(table, name):
    """They may be anything: the value and the gradient are the same."""
    found = []
    for seed in (0, 1):
        source, target = domains()
        features = source.features.clone().requires_grad_()
        torch.manual_seed(seed)
        logits, values = torch.randn(9, 1), torch.randn(9)
        torch.manual_seed(7)
        objective = table[name](features=6, classes=1)
        objective.advance(1.0)
        loss = objective(
            Source(features, logits, source.index, labels=values), Target(target.features, logits[:7], target.index)
        )
        found.append((loss.item(), torch.autograd.grad(loss, features)[0]))
    assert found[0][0] == found[1][0] != 0
    assert torch.equal(found[0][1], found[1][1])


def test_every_alignment_of_the_table_is_one_of_classification():
    assert {name: ALIGNMENTS[name] for name in VALUE_METHODS} == VALUE_METHODS
    assert set(VALUE_LOSSES) == {"mse", "huber"}
    assert set(VALUE_GUIDES) == {"neighbours"}


def test_the_guide_asks_for_the_mean_value_of_the_nearest_source_samples_and_does_not_read_the_batch():
    source, target = domains()
    guide = NeighbourValues(6, 1, k=3)
    with pytest.raises(RuntimeError, match="refresh"):
        guide(source, target)
    guide.refresh(SimpleNamespace(source=source))
    cosines = torch.nn.functional.cosine_similarity(target.features[:, None], source.features[None], dim=2)
    wanted = source.labels[cosines.topk(3, dim=1).indices].mean(1)
    value = guide(source, target).item()
    assert value == pytest.approx((target.logits[:, 0] - wanted).square().mean().item(), rel=1e-5)
    assert guide(domains(5)[0], target).item() == value
    with pytest.raises(ValueError, match="k must be 1"):
        NeighbourValues(6, 1, k=0)
