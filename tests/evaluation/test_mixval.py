"""MixVal: the pairs, the mixtures and what counts where there are none."""

import dataclasses

import pytest
import torch
from evaluation.snapshots import clusters, collapsed, from_features, linear_model
from hypothesis import given
from hypothesis import strategies as st

from paretoda.evaluation.validators import MixVal
from paretoda.evaluation.validators.mixval import consistency, find_partners, gather_inputs


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.booleans())
def test_every_sample_that_can_has_a_partner_of_the_kind_asked_for(labels, same):
    y = torch.tensor(labels)
    first, second = find_partners(y, same)
    assert ((y[first] == y[second]) == same).all()
    assert (first != second).all()
    expected = [a for a in range(len(y)) if any((y[a] == y[b]) == same for b in range(len(y)) if a != b)]
    assert first.tolist() == expected


def test_the_mixture_is_mostly_the_first_sample():
    seen = []
    model = linear_model(2, 2, torch.eye(2))
    model.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    inputs = torch.tensor([[1.0, 0], [0, 1]])
    assert consistency(model, inputs, torch.tensor([0, 1]), same=False) == 1
    assert torch.cat(seen).flatten().tolist() == pytest.approx([0.55, 0.45, 0.45, 0.55])


def test_a_linear_model_is_consistent_within_classes_and_a_sharp_one_across():
    # A threshold at 0.9: mixtures of 1 and 0 fall to class 0, so only the zeros are consistent across classes.
    model = linear_model(2, 2, torch.tensor([[0.0, 0.9], [1.0, 0.0]]))
    inputs = torch.tensor([[0.0, 1], [1, 1], [0, 1], [1, 1]])
    labels = model(inputs).argmax(1)
    assert labels.tolist() == [0, 1, 0, 1]
    assert consistency(model, inputs, labels, same=True) == 1
    assert consistency(model, inputs, labels, same=False) == 0.5


def test_without_pairs_there_is_no_consistency_and_collapse_gets_half():
    model = linear_model(2, 2, torch.eye(2))
    assert consistency(model, torch.eye(2), torch.tensor([0, 1]), same=True) is None
    assert MixVal()(collapsed(30, 4, 5.0)) == 0.5
    assert MixVal()(collapsed(1, 4, 5.0)) == 0
    assert MixVal()(clusters(2, 2, 5.0)) == 1  # one sample each: across alone
    assert MixVal()(clusters(200, 4, 5.0)) == 1


def test_inputs_are_gathered_in_the_order_asked_for():
    inputs = torch.arange(10.0)[:, None]
    assert gather_inputs(iter(inputs.split(3)), torch.tensor([7, 0, 9])).flatten().tolist() == [7, 0, 9]
    with pytest.raises(ValueError, match="gave 10 samples"):
        gather_inputs(iter(inputs.split(3)), torch.tensor([7, 10]))


def test_the_memory_for_inputs_is_bounded():
    seen = []
    snapshot = clusters(300, 2, 5.0)
    snapshot.model.register_forward_hook(lambda _, args, __: seen.append(len(args[0])))
    MixVal(samples=50)(snapshot)
    assert sum(seen) == 100
    big = torch.zeros(300, 2**16)  # a quarter of a megabyte each: four fit
    big[:, 0] = torch.arange(300) % 2
    seen.clear()
    wide = from_features(*[(big[:2], torch.tensor([0, 1]))] * 2, big, linear_model(2**16, 2))
    wide.model.register_forward_hook(lambda _, args, __: seen.append(len(args[0])))
    MixVal(megabytes=1)(dataclasses.replace(wide))
    assert 0 < sum(seen) <= 8
