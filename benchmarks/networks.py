"""The networks, batches and losses of the step benchmark: the same objects for every way of taking a step."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from paretoda.models.backbones.resnet import resnet50

Network: TypeAlias = Literal["cnn", "resnet50"]
CLASSES = 12
_BOTTLENECK = 256


class _SmallCNN(nn.Sequential):
    """Five convolutions with BatchNorm, pooled: (n, 3, h, w) to (n, 256)."""

    width = 256

    def __init__(self) -> None:
        channels = (3, 32, 64, 128, 256, 256)
        layers: list[nn.Module] = []
        for place, (inputs, outputs) in enumerate(pairwise(channels)):
            stride = 1 if place == 0 else 2
            layers += [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Setting:
    """Networks, optimiser and one batch of every kind.

    Args:
        network: which body; a linear bottleneck to 256 features follows it, as in the adaptation literature.
        size: height and width of the images.
        batch: images of the source, of the target, and of the held-out target.
    """

    def __init__(self, network: Network, size: int, batch: int) -> None:
        torch.manual_seed(0)
        body = resnet50() if network == "resnet50" else _SmallCNN()
        self.body: nn.Module = body
        self.bottleneck = nn.Linear(body.width, _BOTTLENECK)
        self.encoder = nn.Sequential(self.body, self.bottleneck)
        self.classifier = nn.Linear(_BOTTLENECK, CLASSES)
        self.discriminator = nn.Sequential(nn.Linear(_BOTTLENECK, 1024), nn.ReLU(), nn.Linear(1024, 1))
        everything = nn.ModuleList([self.encoder, self.classifier, self.discriminator])
        self.optimiser = torch.optim.SGD(everything.parameters(), lr=1e-4, momentum=0.9)
        self.source, self.target, self.held_out = torch.randn(3, batch, 3, size, size).unbind()
        self.labels = torch.randint(CLASSES, (batch,))

    @property
    def shared(self) -> list[nn.Parameter]:
        """The encoder's parameters."""
        return list(self.encoder.parameters())

    @property
    def dimension(self) -> int:
        """The number d of shared parameters."""
        return sum(parameter.numel() for parameter in self.shared)

    def losses(self, source: Tensor, target: Tensor) -> dict[str, Tensor]:
        """What the encoder lowers: three scalars, from features (n, 256) of each domain."""
        return {
            "source": cross_entropy(self.classifier(source), self.labels),
            "alignment": math.log(2) - self.confusion(source, target),
            "target": self.uncertainty(target),
        }

    def adversary(self, source: Tensor, target: Tensor) -> Tensor:
        """What the discriminator lowers: its cross-entropy on detached features."""
        return self.confusion(source.detach(), target.detach())

    def confusion(self, source: Tensor, target: Tensor) -> Tensor:
        """The cross-entropy of the discriminator, for which the source is 1."""
        domain = torch.cat([torch.ones(len(source), 1), torch.zeros(len(target), 1)])
        return binary_cross_entropy_with_logits(self.discriminator(torch.cat([source, target])), domain)

    def uncertainty(self, features: Tensor) -> Tensor:
        """Minus the mutual information of predictions and samples, raised to be non-negative."""
        logs: Tensor = self.classifier(features).log_softmax(dim=1)
        marginal = logs.exp().mean(dim=0)
        information = (logs.exp() * logs).sum(dim=1).mean() - (marginal * marginal.log()).sum()
        return math.log(min(CLASSES, len(features))) - information
