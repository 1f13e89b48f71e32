from dataclasses import replace

import pytest
import torch
from objectives.samples import Samples

from paretoda.objectives import ALIGNMENTS, CrossEntropy, Dann, Tpn, make_alignment
from paretoda.objectives.parts.one_source import OneSource
from paretoda.types import Objective

DOMAIN = torch.tensor([1, 0, 1, 0, 0, 1, 0, 0, 1])


def both(samples, domain=DOMAIN):
    source, target = samples.batch()
    return replace(source, inputs=samples.inputs["source"], domain=domain), target


@pytest.mark.parametrize("name", [name for name, make in ALIGNMENTS.items() if make is not None])
def test_it_is_the_objective_on_the_samples_of_its_source(name):
    samples = Samples()
    objective = make_alignment(name, features=6, classes=3)
    if objective.reads_all_sources:
        return
    objective = objective.double()
    source, target = both(samples)
    alone = replace(samples.source((DOMAIN == 1).nonzero().flatten()), head=samples.head)
    snapshot = samples.snapshot()
    wrapped = OneSource(objective, 1)
    wrapped.refresh(replace(snapshot, source=source, held_out_source=source))
    losses = []
    for part, rows in ((wrapped, source), (objective, alone)):
        torch.manual_seed(0)
        private = part(rows, target), part.private_loss(rows, target)
        losses.append([None if loss is None else loss.item() for loss in private])
    assert losses[0] == pytest.approx(losses[1], nan_ok=False)
    assert wrapped.offset == objective.offset
    assert wrapped.encoder_updates == objective.encoder_updates


def test_refreshes_see_their_own_source_and_its_inputs():
    class Watching(Objective):
        def forward(self, source, target):
            return source.features.sum() + target.features.sum()

        def refresh(self, snapshot):
            self.labels = snapshot.source.labels
            self.rows = torch.cat(list(snapshot.source_inputs()))

    samples = Samples()
    source, _ = both(samples)
    inputs = samples.inputs["source"]
    snapshot = replace(
        samples.snapshot(), source=source, held_out_source=source, source_inputs=lambda: iter(inputs.split(4))
    )
    watching = Watching()
    wrapped = OneSource(watching, 0)
    assert wrapped.refreshes
    wrapped.refresh(snapshot)
    assert torch.equal(watching.labels, source.labels[DOMAIN == 0])
    assert torch.equal(watching.rows, inputs[DOMAIN == 0])
    assert not OneSource(CrossEntropy(6, 3), 0).refreshes
    assert OneSource(Tpn(6, 3), 0).refreshes == Tpn(6, 3).refreshes


def test_schedules_reach_the_objective():
    wrapped = OneSource(Dann(6, 3), 0)
    wrapped.advance(0.0)
    assert wrapped.objective.strength == 0.0
    assert next(name for name, _ in wrapped.named_parameters()).startswith("objective.discriminator")
