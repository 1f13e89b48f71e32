"""Does a guide point where the truth points? Cosines of gradients with that of the true target loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.core.factor import cosines
from paretoda.data.pair import Part
from paretoda.domains import Objective, Source, Target
from paretoda.gradients.gram import Row, gram
from paretoda.gradients.parameters import multipliers, trainable
from paretoda.gradients.passes import combine, vjp
from paretoda.objectives import GUIDES, make_guide
from paretoda.studies.lab import Lab, at_full_strength

_MOST = 512
ORACLES = ("oracle, held-out", "oracle, elsewhere")
"""True cross-entropy on the held-out target, which the guides see too, and on the target's training part."""
SUM = "sum"


def make_guides(lab: Lab) -> dict[str, Objective]:
    """All guides of the table, asking the networks of the lab's target loss."""
    classes = len(lab.pair.classes)
    width = int(lab.snapshot().target.features.shape[1])
    target_loss = lab.step.objectives.get("target")
    return {
        name: make_guide(name, features=width, classes=classes, target_loss=target_loss).to(lab.step.device)
        for name in GUIDES
    }


@dataclass(frozen=True)
class Agreement:
    """What was measured at one checkpoint.

    Args:
        values: guide -> its loss on the held-out target.
        cosines: row -> column -> cosine of their gradients; rows: objectives, their sum, guides; columns: oracles and
            objectives.
    """

    values: dict[str, float]
    cosines: dict[str, dict[str, float]]


def agreement(lab: Lab, guides: Mapping[str, Objective]) -> Agreement:
    """Losses and gradients for the encoder, in evaluation mode, on fixed samples of each part.

    Args:
        lab: the run, as it is now.
        guides: refreshed already.
    """
    with _evaluating(lab.step.model):
        losses = _losses(lab, guides)
        body = trainable(lab.step.model.encoder)
        rows: dict[str, Row] = {name: vjp([loss], body, None, keep=True) for name, loss in losses.items()}
    names = list(lab.step.objectives)
    total: Row = [combine([rows[name][index] for name in names], [1.0] * len(names)) for index in range(len(body))]
    rows[SUM] = total
    table = cosines(gram(list(rows.values()), multipliers(body, lab.step.optimiser)).cpu().numpy())
    places = {name: place for place, name in enumerate(rows)}
    found = {
        row: {column: float(table[places[row], places[column]]) for column in (*ORACLES, *names)}
        for row in (*names, SUM, *guides)
    }
    return Agreement({name: float(losses[name].detach()) for name in guides}, found)


def _losses(lab: Lab, guides: Mapping[str, Objective]) -> dict[str, Tensor]:
    source, target = _labelled(lab), _unlabelled(lab, "target")
    ahead = _unlabelled(lab, "held-out-target")
    device = lab.step.device
    found = {name: at_full_strength(part).to(device)(source, target) for name, part in lab.step.objectives.items()}
    found |= {name: guide(source, ahead) for name, guide in guides.items()}
    for name, domain, part in zip(ORACLES, (ahead, target), ("held-out-target", "target"), strict=True):
        truth = lab.oracle_labels_of(part)[domain.index.cpu()].to(device)  # type: ignore[arg-type]  # two Parts
        found[name] = functional.cross_entropy(domain.logits, truth)
    return found


def _chosen(lab: Lab, part: Part) -> Tensor:
    """Places in a part, at most so many: drawn at random, always the same ones."""
    size = len(lab.pair.places(part))
    return torch.randperm(size, generator=torch.Generator().manual_seed(0))[:_MOST]


def _inputs(lab: Lab, part: Part, index: Tensor) -> Tensor:
    rows = lab.pair.source if part == "source" else lab.pair.target
    return rows.evaluate(lab.pair.places(part)[index.numpy()]).to(lab.step.device)


def _labelled(lab: Lab) -> Source:
    index = _chosen(lab, "source")
    inputs = _inputs(lab, "source", index)
    features = lab.step.model.encoder(inputs)
    labels = lab.pair.labels_of("source")[index].to(lab.step.device)
    return Source(features, lab.step.model.head(features), index, inputs, labels=labels)


def _unlabelled(lab: Lab, part: Part) -> Target:
    index = _chosen(lab, part)
    inputs = _inputs(lab, part, index)
    features = lab.step.model.encoder(inputs)
    return Target(features, lab.step.model.head(features), index, inputs)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Inside, the model is in evaluation mode, with gradients."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
