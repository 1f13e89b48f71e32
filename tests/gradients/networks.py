"""A small adaptation problem with conflicting losses, in float64, with every part that `backward` knows."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Toy:
    """Encoder, classifier, discriminator; source, target and held-out batches."""

    def __init__(self, dtype=torch.float64, *, norm=True, joint=False, seed=0):
        torch.manual_seed(seed)
        layers = [nn.Linear(6, 16), nn.BatchNorm1d(16) if norm else nn.Identity(), nn.Tanh(), nn.Linear(16, 8)]
        self.encoder = nn.Sequential(*layers).to(dtype)
        self.classifier = nn.Linear(8, 3).to(dtype)
        self.discriminator = nn.Linear(8, 1).to(dtype)
        self.joint = joint
        self.source, self.target, self.held_out = (torch.randn(n, 6, dtype=dtype) for n in (12, 10, 9))
        self.target = self.target + 0.5
        self.labels = torch.arange(12) % 3

    def networks(self):
        return nn.ModuleList([self.encoder, self.classifier, self.discriminator])

    def parameters(self):
        return list(self.networks().parameters())

    def features(self):
        if self.joint:
            both = self.encoder(torch.cat([self.source, self.target]))
            return both[:12], both[12:], self.encoder(self.held_out)
        return self.encoder(self.source), self.encoder(self.target), self.encoder(self.held_out)

    def entropy(self, features):
        p = functional.softmax(self.classifier(features), dim=1)
        mean = p.mean(dim=0)
        return (mean * mean.log()).sum() - (p * p.log()).sum(dim=1).mean() + torch.log(torch.tensor(3.0))

    def domain(self, source, target):
        return (
            functional.softplus(-self.discriminator(source)).mean()
            + functional.softplus(self.discriminator(target)).mean()
        ) / 2

    def losses(self, features):
        source, target, _ = features
        return {
            "source": functional.cross_entropy(self.classifier(source), self.labels),
            "alignment": torch.log(torch.tensor(2.0)) - self.domain(source, target),
            "target": self.entropy(target),
        }

    def guide(self, features):
        return self.entropy(features[2])

    def private(self, features):
        return self.domain(features[0].detach(), features[1].detach())

    def clear(self):
        for parameter in self.parameters():
            parameter.grad = None

    def grads(self):
        return [None if p.grad is None else p.grad.clone() for p in self.parameters()]


def rows_of(toy):
    """The encoder's gradients of the three losses and of the guide, one plain backward pass each, as a matrix."""
    rows = []
    for name in ("source", "alignment", "target", "guide"):
        features = toy.features()
        loss = toy.guide(features) if name == "guide" else toy.losses(features)[name]
        found = torch.autograd.grad(loss, list(toy.encoder.parameters()), allow_unused=True)
        rows.append(torch.cat([g.reshape(-1) for g in found]))
    return torch.stack(rows)


def flat_grad(module):
    return torch.cat([p.grad.reshape(-1) for p in module.parameters()])
