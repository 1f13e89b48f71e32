"""Adversaries on prediction maps: AdaSegNet (Tsai et al., 2018) and AdvEnt (Vu et al., 2019)."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.differentiation import call_frozen
from paretoda.objectives.parts.discriminator import Statistics, domain_cross_entropy
from paretoda.objectives.segmentation.minent import output_logits, self_information
from paretoda.objectives.segmentation.pixel_objective import zero_loss
from paretoda.types import Objective, Source, Target

GATE_STEPS = 100
"""Number of recent steps whose accuracies the gate averages."""
FEWER_LAYERS, PUBLISHED_LAYERS = 3, 5


class MapDiscriminator(nn.Module):
    """4x4 convolutions with stride 2, each but the last followed by LeakyReLU and twice as wide as the one before.

    There is no normalisation, because the two domains are passed separately. Every layer halves the map, rounded down.

    Args:
        classes: Number of channels K of the maps.
        layers: Number of convolutions; 5 in AdaSegNet.
        width: Number of channels behind the first convolution.

    Raises:
        ValueError: There are fewer than one layer or channel.

    Examples:
        >>> MapDiscriminator(classes=3, layers=3, width=4)(torch.randn(2, 3, 16, 16)).shape
        torch.Size([2, 1, 2, 2])
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
        """Return the scores of the maps (n, K, h, w), shape (n, 1, h / 2^layers, w / 2^layers).

        Raises:
            ValueError: The maps are too small for the number of layers.
        """
        smallest = 2 ** len(self.layers)
        if min(maps.shape[-2:]) < smallest:
            size = "x".join(map(str, maps.shape[-2:]))
            raise ValueError(f"{len(self.layers)} layers need maps of {smallest} pixels or more, got {size}: use fewer")
        for layer in self.layers[:-1]:
            maps = nn.functional.leaky_relu(layer(maps), 0.2)
        scores: Tensor = self.layers[-1](maps)
        return scores


def accuracy(source: Tensor, target: Tensor, *, border: float) -> Tensor:
    """Share of scores on the right side of the border, each domain counting half; ½ where all scores are equal.

    Args:
        source: Scores, any shape; right above the border.
        target: Scores, any shape; right at the border or below.
        border: Border between "source" and "target".
    """
    return ((source > border).float().mean() + (target <= border).float().mean()) / 2


class AccuracyGate(nn.Module):
    """Which discriminators had a mean accuracy above the gate in the last hundred steps; none at first.

    Args:
        discriminators: Number of discriminators.
        gate: Accuracy, above 0 and below 1.

    Raises:
        ValueError: The gate does not lie between 0 and 1.
    """

    recent: Tensor

    def __init__(self, discriminators: int, gate: float) -> None:
        super().__init__()
        if not 0 < gate < 1:
            raise ValueError(f"gate must be an accuracy below 1, or 0 for none, got {gate}")
        self.gate = gate
        self.register_buffer("recent", torch.full((GATE_STEPS, discriminators), math.nan))

    def forward(self) -> list[bool]:
        """Return for every discriminator whether it counts; steps that have not happened are left out of the mean."""
        open_gates: list[bool] = (self.recent.nanmean(0) > self.gate).tolist()
        return open_gates

    @torch.no_grad()
    def learn(self, accuracies: Tensor) -> None:
        """Add the accuracies of a step, shape (discriminators,), and drop those of the oldest."""
        self.recent.copy_(torch.cat([self.recent[1:], accuracies.to(self.recent).unsqueeze(0)]))

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"gate={self.gate}"


def map_encoder_loss(scores: Tensor, *, least_squares: bool) -> Tensor:
    """Loss of the encoder: the mean of -log D of the target's scores, or of (score - 1)².

    Args:
        scores: Log-odds of "source", any shape.
        least_squares: Use the second form (LS-GAN).

    Examples:
        >>> map_encoder_loss(torch.zeros(2, 1, 4, 4), least_squares=True)
        tensor(1.)
    """
    return (scores - 1).square().mean() if least_squares else functional.softplus(-scores).mean()


def map_discriminator_loss(source: Tensor, target: Tensor, *, least_squares: bool) -> Tensor:
    """Loss of the discriminator: half of the source's loss plus half of the target's.

    Args:
        source: Scores, any shape.
        target: Scores, any shape.
        least_squares: Use squared distances from 1 (source) and 0 (target) instead of cross-entropies.
    """
    if least_squares:
        return ((source - 1).square().mean() + target.square().mean()) / 2
    return domain_cross_entropy(source, target)


class MapAdversary(Objective):
    """Adversarial loss of the target's maps; abstract: a subclass defines what the discriminator sees.

    It works at the resolution of the features, which the original enlarges to that of the image: the discriminator sees
    the same and costs a sixteenth or less. There the default number of layers is 3, so that 8 pixels suffice, otherwise
    5.

    Args:
        features: Width of the features (not used).
        classes: Number of classes K.
        strength: λ of the prediction, the factor of the value and the gradient; the discriminators learn at full
            strength.
        auxiliary: λ of each extra output.
        levels: Number of outputs with a discriminator of their own, including the prediction.
        layers: Number of layers of a discriminator; None: see above.
        width: Width of its first layer.
        enlarge: Give it maps of the size of the inputs, as published.
        least_squares: Use squared distances instead of cross-entropies (LS-GAN).
        gate: An output counts for the encoder only while the mean accuracy of its discriminator in the last hundred
            steps is above this; 0.6 in CyCADA's code, 0 for no gate.

    Raises:
        ValueError: There are fewer than one level, or the gate is out of its range.
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
    def discriminator_input(self, logits: Tensor) -> Tensor:
        """Return what the discriminator sees of logits (n, K, h, w), of the same shape."""

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the sum over outputs of strength times `map_encoder_loss` on the target; 0 behind a closed gate."""
        maps = output_logits(target, len(self.strengths), enlarge=self.enlarge)
        open_gates = [True] * len(maps) if self.gate is None else self.gate()
        losses = [
            map_encoder_loss(
                call_frozen(network, self.discriminator_input(logits), "batch"), least_squares=self.least_squares
            )
            if counts
            else zero_loss(logits)
            for network, logits, counts in zip(self.discriminators, maps, open_gates, strict=True)
        ]
        return torch.stack([strength * loss for strength, loss in zip(self.strengths, losses, strict=True)]).sum()

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Return the losses of the discriminators on detached maps; in training the gate stores their accuracies."""
        pairs = zip(*(output_logits(domain, len(self.strengths), enlarge=self.enlarge) for domain in (source, target)))  # noqa: B905 - `outputs` gives as many
        scores = [
            tuple(network(self.discriminator_input(logits.detach())) for logits in pair)
            for network, pair in zip(self.discriminators, pairs, strict=True)
        ]
        if self.gate is not None and self.training:
            border = 0.5 if self.least_squares else 0.0
            self.gate.learn(torch.stack([accuracy(*pair, border=border) for pair in scores]))
        return torch.stack([map_discriminator_loss(*pair, least_squares=self.least_squares) for pair in scores]).sum()

    @property
    def offset(self) -> float:
        """Strengths of the outputs behind a closed gate."""
        open_gates = [True] * len(self.strengths) if self.gate is None else self.gate()
        return sum(strength for strength, counts in zip(self.strengths, open_gates, strict=True) if not counts)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"strengths={self.strengths}, enlarge={self.enlarge}, least_squares={self.least_squares}"


class AdaSegNet(MapAdversary):
    """Adversarial loss of the target's probability maps.

    The options are those of `MapAdversary`.

    Examples:
        >>> maps = {"features": torch.randn(1, 4, 8, 8), "logits": torch.randn(1, 3, 8, 8), "index": torch.arange(1)}
        >>> source = Source(**maps, labels=torch.zeros(1, 8, 8, dtype=torch.long))
        >>> objective = AdaSegNet(features=4, classes=3)
        >>> bool(objective(source, Target(**maps)) > 0), bool(objective.private_loss(source, Target(**maps)) > 0)
        (True, True)
    """

    def discriminator_input(self, logits: Tensor) -> Tensor:
        """Return the probabilities."""
        return logits.softmax(1)


class AdvEnt(MapAdversary):
    """Adversarial loss of the target's self-information maps.

    The options are those of `MapAdversary`.

    Examples:
        >>> maps = {"features": torch.randn(1, 4, 8, 8), "logits": torch.randn(1, 3, 8, 8), "index": torch.arange(1)}
        >>> source = Source(**maps, labels=torch.zeros(1, 8, 8, dtype=torch.long))
        >>> bool(AdvEnt(features=4, classes=3)(source, Target(**maps)) > 0)
        True
    """

    def discriminator_input(self, logits: Tensor) -> Tensor:
        """Return -p log p of every class, over log K."""
        return self_information(logits)
