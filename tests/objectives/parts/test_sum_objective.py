"""A published method as one objective: the sum of its parts in everything."""

import pytest
import torch
from objectives.samples import Samples

from paretoda.objectives import TARGET_LOSSES, CrossEntropy, Dann
from paretoda.objectives.parts.sum_objective import SumObjective, merge_source_and_alignment


def parts(samples):
    torch.manual_seed(0)
    shape = {"features": samples.features, "classes": samples.classes}
    return CrossEntropy(**shape), Dann(**shape, hidden=8).double(), TARGET_LOSSES["tcm"](**shape).double()


def test_its_value_and_its_private_loss_are_the_sums():
    samples = Samples()
    source, dann, tcm = parts(samples)
    whole, batch = SumObjective([source, dann, tcm]), samples.batch()
    assert whole(*batch).item() == pytest.approx(sum(part(*batch).item() for part in (source, dann, tcm)))
    own = dann.private_loss(*batch) + tcm.private_loss(*batch)
    assert whole.private_loss(*batch).item() == pytest.approx(own.item())
    assert SumObjective([source]).private_loss(*batch) is None


def test_the_networks_of_a_part_feel_their_own_loss_only():
    samples = Samples()
    source, dann, tcm = parts(samples)
    batch = samples.batch()
    alone = torch.autograd.grad(dann.private_loss(*batch), list(dann.parameters()))
    both = torch.autograd.grad(SumObjective([source, dann, tcm]).private_loss(*batch), list(dann.parameters()))
    torch.testing.assert_close(both, alone)


def test_schedules_and_refreshes_reach_every_part():
    samples = Samples()
    shape = {"features": samples.features, "classes": samples.classes}
    source, dann, _ = parts(samples)
    propagation = TARGET_LOSSES["propagation"](**shape)
    whole = SumObjective([source, dann])
    assert not whole.refreshes
    assert SumObjective([source, propagation]).refreshes
    batch = samples.batch()
    dann.advance(0.5)
    wanted = source(*batch) + dann(*batch)
    whole.advance(0.0)
    assert whole(*batch).item() != pytest.approx(wanted.item())
    whole.advance(0.5)
    assert whole(*batch).item() == pytest.approx(wanted.item())


def test_the_method_takes_the_place_of_the_source_loss():
    source, dann, tcm = parts(Samples())
    assert merge_source_and_alignment({"source": source, "target": tcm}) == {"source": source, "target": tcm}
    found = merge_source_and_alignment({"source": source, "alignment": dann, "target": tcm})
    assert list(found) == ["source", "target"]
    assert list(found["source"].parts) == [source, dann]


def test_what_the_encoder_lowers_several_times_cannot_be_added():
    samples = Samples()
    often = Dann(features=samples.features, classes=samples.classes)
    often.encoder_updates = 4
    with pytest.raises(ValueError, match="several times"):
        SumObjective([often])
