"""Adversaries on prediction maps: AdaSegNet (Tsai et al., 2018) and AdvEnt (Vu et al., 2019)."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.differentiation import frozen
from paretoda.objectives.parts.discriminator import Statistics, domain_cross_entropy
from paretoda.objectives.segmentation.minent import outputs, self_information
from paretoda.objectives.segmentation.pixel_objective import nothing
from paretoda.types import Objective, Source, Target


class MapDiscriminator(nn.Module):
    """4x4 convolutions with stride 2, each but the last with LeakyReLU behind it and twice as wide as the one before.

    Without normalisation, as both domains come apart. Every layer halves the map, rounded down.

    Args:
        classes: channels K of the maps.
        layers: how many convolutions; 5 in AdaSegNet.
        width: channels behind the first.
    """

    def __init__(self, classes: int, layers: int, width: int) -> None:
        super().__init__()
        if layers < 1 or width < 1:
            raise ValueError(f"layers and width must be 1 or more, got {layers} and {width}")
        channels = [classes, *(width * 2**index for index in range(layers - 1)), 1]
        self.layers = nn.ModuleList(
            nn.Conv2d(channels[index], channels[index + 1], 4, stride=2, padding=1) for index in range(layers)
        )

    def forward(self, maps: Tensor, statistics: Statistics = "batch") -> Tensor:  # noqa: ARG002 - it has no BatchNorm
        """Scores of the maps (n, K, h, w), shape (n, 1, h / 2^layers, w / 2^layers)."""
        smallest = 2 ** len(self.layers)
        if min(maps.shape[-2:]) < smallest:
            size = "x".join(map(str, maps.shape[-2:]))
            raise ValueError(f"{len(self.layers)} layers need maps of {smallest} pixels or more, got {size}: use fewer")
        for layer in self.layers[:-1]:
            maps = nn.functional.leaky_relu(layer(maps), 0.2)
        scores: Tensor = self.layers[-1](maps)
        return scores


MEMORY = 100
"""Steps whose accuracies count."""


def accuracy(source: Tensor, target: Tensor, *, border: float) -> Tensor:
    """The share of scores on the right side of the border, either domain counting half; ½ where all are alike.

    Args:
        source: scores, any shape; right above the border.
        target: scores, any shape; right at the border or below.
        border: between "source" and "target".
    """
    return ((source > border).float().mean() + (target <= border).float().mean()) / 2


class AccuracyGate(nn.Module):
    """Which discriminators had a mean accuracy above the gate in the last hundred steps; none at first.

    Args:
        discriminators: how many there are.
        gate: accuracy, above 0 and below 1.
    """

    recent: Tensor

    def __init__(self, discriminators: int, gate: float) -> None:
        super().__init__()
        if not 0 < gate < 1:
            raise ValueError(f"gate must be an accuracy below 1, or 0 for none, got {gate}")
        self.gate = gate
        self.register_buffer("recent", torch.full((MEMORY, discriminators), math.nan))

    def forward(self) -> list[bool]:
        """Of every discriminator whether it is heard; steps that have not been are left out of the mean."""
        heard: list[bool] = (self.recent.nanmean(0) > self.gate).tolist()
        return heard

    @torch.no_grad()
    def learn(self, accuracies: Tensor) -> None:
        """Remember those of a step, shape (discriminators,), and forget those of the oldest."""
        self.recent.copy_(torch.cat([self.recent[1:], accuracies.to(self.recent).unsqueeze(0)]))

    def extra_repr(self) -> str:
        """Settings."""
        return f"gate={self.gate}"


FEWER_LAYERS, PUBLISHED_LAYERS = 3, 5


def taken_for_source(scores: Tensor, *, least_squares: bool) -> Tensor:
    """What the encoder lowers: -log D of the target's scores, or (score - 1)², on average.

    Args:
        scores: log-odds of "source", any shape.
        least_squares: the second form (LS-GAN).
    """
    return (scores - 1).square().mean() if least_squares else functional.softplus(-scores).mean()


def told_apart(source: Tensor, target: Tensor, *, least_squares: bool) -> Tensor:
    """What the discriminator lowers: half of the source's loss and half of the target's.

    Args:
        source: scores, any shape.
        target: scores, any shape.
        least_squares: squared distances from 1 (source) and 0 (target) in the place of cross-entropies.
    """
    if least_squares:
        return ((source - 1).square().mean() + target.square().mean()) / 2
    return domain_cross_entropy(source, target)


class MapAdversary(Objective):
    """How far the target's maps are from being taken for the source's; abstract: what maps.

    At the resolution of the features, which the original enlarges to that of the image: the discriminator sees the
    same and costs a sixteenth or less. There `layers` is 3, so that 8 pixels suffice, otherwise 5.

    Args:
        features: width of the features; not used.
        classes: number of classes K.
        strength: λ of the prediction, of value and gradient; the discriminators learn at full strength.
        auxiliary: λ of each further output.
        levels: outputs with a discriminator of their own, the prediction's among them.
        layers: of a discriminator; None: see above.
        width: of its first layer.
        enlarge: show it maps of the size of the inputs, as published.
        least_squares: squared distances in the place of cross-entropies (LS-GAN).
        gate: an output counts for the encoder only while the mean accuracy of its discriminator in the last hundred
            steps is above this; 0.6 in CyCADA's code, 0 for no gate.
    """

    def __init__(  # noqa: PLR0913 - every option is one of the papers' but `enlarge`
        self,
        features: int,
        classes: int,
        *,
        strength: float = 1e-3,
        auxiliary: float = 2e-4,
        levels: int = 1,
        layers: int | None = None,
        width: int = 64,
        enlarge: bool = False,
        least_squares: bool = False,
        gate: float = 0.0,
    ) -> None:
        super().__init__()
        if levels < 1:
            raise ValueError(f"levels must be 1 or more, got {levels}")
        self.features, self.classes = features, classes
        self.strengths = (strength, *[auxiliary] * (levels - 1))
        self.enlarge, self.least_squares = enlarge, least_squares
        self.gate = AccuracyGate(levels, gate) if gate else None
        layers = (PUBLISHED_LAYERS if enlarge else FEWER_LAYERS) if layers is None else layers
        self.discriminators = nn.ModuleList(MapDiscriminator(classes, layers, width) for _ in self.strengths)

    @abstractmethod
    def seen(self, logits: Tensor) -> Tensor:
        """What the discriminator sees of logits (n, K, h, w), of the same shape."""

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The sum over outputs of strength times what is lacking for "source" on the target; 0 behind a closed gate."""
        maps = outputs(target, len(self.strengths), enlarge=self.enlarge)
        heard = [True] * len(maps) if self.gate is None else self.gate()
        losses = [
            taken_for_source(frozen(network, self.seen(logits), "batch"), least_squares=self.least_squares)
            if counts
            else nothing(logits)
            for network, logits, counts in zip(self.discriminators, maps, heard, strict=True)
        ]
        return torch.stack([strength * loss for strength, loss in zip(self.strengths, losses, strict=True)]).sum()

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """The discriminators' losses, on detached maps; in training the gate learns how right they were."""
        pairs = zip(*(outputs(domain, len(self.strengths), enlarge=self.enlarge) for domain in (source, target)))  # noqa: B905 - `outputs` gives as many
        scores = [
            tuple(network(self.seen(logits.detach())) for logits in pair)
            for network, pair in zip(self.discriminators, pairs, strict=True)
        ]
        if self.gate is not None and self.training:
            border = 0.5 if self.least_squares else 0.0
            self.gate.learn(torch.stack([accuracy(*pair, border=border) for pair in scores]))
        return torch.stack([told_apart(*pair, least_squares=self.least_squares) for pair in scores]).sum()

    def extra_repr(self) -> str:
        """Settings."""
        return f"strengths={self.strengths}, enlarge={self.enlarge}, least_squares={self.least_squares}"


class AdaSegNet(MapAdversary):
    """How far the target's maps of probabilities are from being taken for the source's; options of `MapAdversary`."""

    def seen(self, logits: Tensor) -> Tensor:
        """The probabilities."""
        return logits.softmax(1)


class AdvEnt(MapAdversary):
    """How far the target's maps of self-information are from the source's; options of `MapAdversary`."""

    def seen(self, logits: Tensor) -> Tensor:
        """-p log p of every class, over log K."""
        return self_information(logits)
