"""Small images of two domains, a convolutional encoder and heads with one, two levels or two classifiers."""

from __future__ import annotations

import torch
from objectives.samples import teach
from torch import nn

from paretoda.objectives.segmentation.pixel_objective import pixel_rows
from paretoda.types import IGNORE, Model, Snapshot, Source, Target


class TwoHeads(nn.Module):
    """Two classifiers, whose sum predicts."""

    def __init__(self, features, classes):
        super().__init__()
        self.one, self.other = nn.Conv2d(features, classes, 1), nn.Conv2d(features, classes, 1)

    def both(self, features):
        return self.one(features), self.other(features)

    def forward(self, features):
        one, other = self.both(features)
        return one + other

    def classifier_weights(self):
        pair = [torch.cat([p.flatten() for p in part.parameters()]) for part in (self.one, self.other)]
        return pair[0], pair[1]


class SceneModel(Model):
    """With further outputs: an auxiliary one, or both classifiers."""

    def __init__(self, features, classes, kind):
        head = TwoHeads(features, classes) if kind == "two classifiers" else nn.Conv2d(features, classes, 1)
        super().__init__(nn.Conv2d(3, features, 4, stride=4), head)
        self.kind, self.auxiliary = kind, nn.Conv2d(features, classes, 1) if kind == "two levels" else None

    def extra_logits(self, features):
        if self.kind == "two classifiers":
            return self.head.both(features)
        return () if self.auxiliary is None else (self.auxiliary(features),)


class Scenes:
    """Differentiable domains of maps (8, 10) out of images (32, 40), with label maps that have holes."""

    def __init__(self, kind="one", classes=4, features=6, images=2, dtype=torch.float64, seed=0):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.model = SceneModel(features, classes, kind).to(dtype)
            self.inputs = torch.randn(images, 3, 32, 40, dtype=dtype)
            self.shifted = torch.randn(images, 3, 32, 40, dtype=dtype) + 0.7
            coarse = torch.randint(0, classes, (images, 4, 5)).repeat_interleave(8, 1).repeat_interleave(8, 2)
            self.labels = coarse.masked_fill(torch.rand(images, 32, 40) < 0.1, IGNORE)
        self.features, self.classes = features, classes
        self.taught = False

    def _parts(self, inputs):
        found = self.model.encoder(inputs)
        index = torch.arange(len(inputs))
        return found, self.model.head(found), index, inputs, self.model.head, self.model.extra_logits(found)

    def source(self, labels=None):
        return Source(*self._parts(self.inputs), labels=self.labels if labels is None else labels)

    def target(self):
        target = Target(*self._parts(self.shifted))
        return teach(target, self.labels.where(self.labels != IGNORE, 0)) if self.taught else target

    def batch(self):
        return self.source(), self.target()

    def unlabelled(self):
        return self.source(torch.full_like(self.labels, IGNORE))

    def body(self):
        return list(self.model.encoder.parameters())

    def snapshot(self):
        with torch.no_grad():
            source, target = pixel_rows(self.source(), 10**6), pixel_rows(self.target(), 10**6)
        return Snapshot(source, source, target, target, self.model, lambda: iter(self.shifted.split(1)))
