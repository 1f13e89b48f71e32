"""Small domains with a gap, an encoder and a head, and whole sets for refreshes."""

from __future__ import annotations

import torch
from torch import nn

from paretoda.types import Model, Snapshot, Source, Target, TaughtTarget


class Samples:
    """Source, target and held-out batches whose features and logits are differentiable in the encoder and the head."""

    def __init__(self, classes=3, features=6, source=9, target=21, held_out=8, dtype=torch.float64, seed=0):
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape):
            return torch.randn(*shape, generator=generator, dtype=dtype)

        self.classes, self.features = classes, features
        self.taught = False
        self.encoder, self.head = nn.Linear(5, features).to(dtype), nn.Linear(features, classes).to(dtype)
        for parameter in [*self.encoder.parameters(), *self.head.parameters()]:
            parameter.data = draw(*parameter.shape)
        first = draw(source, 5)
        near = {name: first[torch.arange(n) % source] for name, n in (("target", target), ("held_out", held_out))}
        self.inputs = {"source": first} | {name: at + 0.5 + 0.3 * draw(*at.shape) for name, at in near.items()}
        self.labels = torch.arange(source) % classes
        with torch.no_grad():
            for label in range(min(classes, source)):  # predictions, prototypes and neighbours can agree
                self.head.weight[label] = self.encoder(first[self.labels == label]).mean(0)
        self.model = Model(self.encoder, self.head)

    def _parts(self, name, order=None):
        inputs = self.inputs[name] if order is None else self.inputs[name][order]
        features = self.encoder(inputs)
        return features, self.head(features), torch.arange(len(inputs)) if order is None else order

    def source(self, order=None):
        labels = self.labels if order is None else self.labels[order]
        return Source(*self._parts("source", order), head=self.head, labels=labels)

    def target(self, order=None):
        target = Target(*self._parts("target", order), head=self.head)
        return teach(target, target.index % self.classes) if self.taught else target

    def held_out(self, order=None):
        return Target(*self._parts("held_out", order))

    def batch(self):
        return self.source(), self.target()

    def snapshot(self):
        with torch.no_grad():
            source, target, held_out = self.source(), self.target(), self.held_out()
        return Snapshot(source, source, target, held_out, self.model, lambda: iter([self.inputs["target"]]))

    def body(self):
        return list(self.encoder.parameters())

    def heads(self):
        return list(self.head.parameters())


def teach(target, labels):
    """The same target with a teacher's labels, which count more and more from sample to sample."""
    weights = torch.ones_like(labels, dtype=target.logits.dtype) * (1 + target.index.view(-1, *[1] * (labels.ndim - 1)))
    given = {name: value for name, value in vars(target).items() if value is not None}
    return TaughtTarget(**given, labels=labels, weights=weights)


def source_of(features, logits, labels=None):
    """A source made by hand; labels are 0 where none are given."""
    labels = torch.zeros(len(features), dtype=torch.int64) if labels is None else labels
    return Source(features, logits, torch.arange(len(features)), labels=labels)


def target_of(features, logits):
    """A target made by hand."""
    return Target(features, logits, torch.arange(len(features)))


def gradients(loss, parameters):
    """Of the loss for each parameter, zeros where there is no path."""
    if not loss.requires_grad:
        return [torch.zeros_like(parameter) for parameter in parameters]
    found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for g, p in zip(found, parameters, strict=True)]


def silent(loss, parameters):
    """Whether the loss has no gradient for any of the parameters."""
    return not any(gradient.any() for gradient in gradients(loss, parameters))


def adversary_fitted(objective, samples, steps=200, lr=0.05):
    """Train the objective's own networks on the present features."""
    optimiser = torch.optim.Adam(objective.parameters(), lr=lr)
    with torch.no_grad():
        batch = samples.batch()
    for _ in range(steps):
        optimiser.zero_grad()
        objective.private_loss(*batch).backward()
        optimiser.step()
    return objective
