"""GSP: source and target as graphs that are laid on each other, edge by edge and node by node (Xia and Ding, 2020)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.differentiation import frozen, full_precision
from paretoda.objectives.parts.step_cache import StepCache
from paretoda.objectives.parts.transport import entropic_gromov_wasserstein
from paretoda.objectives.parts.two_classifiers import TwoClassifiers, both_cross_entropies
from paretoda.types import Objective, Source, Target

_ROUNDS, _SCALINGS = 5, 20
"""Enough for the entropy that is used, at a tenth of the cost of a converged coupling."""


@full_precision
def similarities(rows: Tensor) -> Tensor:
    """(1 + cosine) / 2 of all pairs of rows (n, d): between 0 and 1, and 1 with itself; shape (n, n)."""
    directions = functional.normalize(rows, dim=1)
    return (1 + directions @ directions.T) / 2


def masses(graph: Tensor) -> Tensor:
    """The nodes' degrees, as shares of their sum; shape (n,) for a graph (n, n)."""
    degrees = graph.sum(1)
    return degrees / degrees.sum()


def shares(source: Tensor, target: Tensor, labels: Tensor, pseudo: Tensor, entropy: float) -> Tensor:
    """How much of a source sample every target sample is: a coupling of the graphs, within classes, by rows.

    Args:
        source: features, shape (n, d).
        target: features, shape (m, d).
        labels: of the source, shape (n,).
        pseudo: labels that the target is thought to have, shape (m,).
        entropy: weight of the coupling's entropy.

    Returns:
        Rows with sum 1, or 0 where no target sample is of the class; constants, shape (n, m).
    """
    one, other = similarities(source.detach()), similarities(target.detach())
    same = labels.unsqueeze(1) == pseudo
    strange = (~same).to(one.dtype)  # costs as much as the worst pair: no coupling within classes need exist
    coupling = entropic_gromov_wasserstein(
        one, other, masses(one), masses(other), extra=strange, entropy=entropy, rounds=_ROUNDS, scalings=_SCALINGS
    )
    within = coupling * same
    totals = within.sum(1, keepdim=True)
    return (within / totals.clamp(min=torch.finfo(totals.dtype).tiny)).to(source.dtype)


def found(coupled: Tensor) -> Tensor:
    """A weight for every source sample: equal, of sum 1, for those that have an image, and 0 for the others.

    Args:
        coupled: as `shares` returns it, shape (n, m).

    Returns:
        Shape (n,).
    """
    there = (coupled.sum(1) > 0).to(coupled.dtype)
    return there / there.sum().clamp(min=1)


@full_precision
def spread(rows: Tensor) -> Tensor:
    """The mean squared distance of the rows (n, d) from their mean; a little above 0 where they are all alike."""
    return (rows - rows.mean(0)).square().sum(1).mean().clamp(min=torch.finfo(rows.dtype).eps)


def side(logits: Tensor, which: int) -> Tensor:
    """-log of the probability of one classifier's classes among those of both.

    Args:
        logits: of both classifiers, shape (2, n, K).
        which: 0 for the first, 1 for the second.

    Returns:
        Shape (n,); exp(-side 0) + exp(-side 1) = 1.
    """
    return logits.logsumexp((0, 2)) - logits[which].logsumexp(1)


class Gsp(Objective):
    """How far source samples are from the target samples coupled to them, and how well two classifiers tell them apart.

    Every source sample has an image: the mean of the target samples of its class to which a Gromov-Wasserstein
    coupling of the batch's two graphs sends it. The coupling is a constant. A source sample whose class no target
    sample is thought to have is left out. Distances are in units of the batch's spread: shrinking all features wins
    nothing.

    Args:
        features: width d of the features.
        classes: number of classes K.
        hidden: width of the hidden layer of the two classifiers, one for samples, one for images.
        strength: λ1, of value and gradient.
        entropy: of the coupling, beside costs between 0 and 1.
    """

    def __init__(
        self, features: int, classes: int, *, hidden: int = 256, strength: float = 0.1, entropy: float = 0.05
    ) -> None:
        super().__init__()
        if entropy <= 0:
            raise ValueError(f"entropy must be positive, got {entropy}")
        self.strength, self.entropy = strength, entropy
        self.classifiers = TwoClassifiers(features, classes, (hidden,), 0.0, norm=False)
        self.coupled: StepCache[Tensor] = StepCache()

    def shares(self, source: Source, target: Target) -> Tensor:
        """`shares` of the batch, whose target samples have the classes that the second classifier gives them."""
        pseudo = frozen(self.classifiers, target.features.detach(), "batch")[1].argmax(1)
        return shares(source.features, target.features, source.labels, pseudo, self.entropy)

    def forward(self, source: Source, target: Target) -> Tensor:
        """Strength times (squared distance to the images + what says that a sample is none and an image is one)."""
        coupled = self.coupled.keep(source, self.shares(source, target))
        images, weights = coupled @ target.features, found(coupled)
        unit = spread(torch.cat([source.features, target.features]))
        distance = ((source.features - images).square().sum(1) * weights).sum() / unit
        samples_told = side(frozen(self.classifiers, source.features, "batch"), 1).mean()
        images_told = (side(frozen(self.classifiers, images, "batch"), 0) * weights).sum()
        return self.strength * (distance + samples_told + images_told)

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Both classifiers learn samples and images by the source's labels, and to claim their own; all detached."""
        coupled = self.coupled.take(source)
        coupled = self.shares(source, target) if coupled is None else coupled
        of_samples = self.classifiers(source.features.detach(), "learn")
        of_images = self.classifiers(coupled @ target.features.detach(), "learn")
        known = both_cross_entropies(of_samples, source.labels) + side(of_samples, 0).mean()
        labels = source.labels.repeat(2)
        errors = functional.cross_entropy(of_images.flatten(0, 1), labels, reduction="none").view(2, -1).sum(0)
        return known + ((errors + side(of_images, 1)) * found(coupled)).sum()

    def extra_repr(self) -> str:
        """Settings."""
        return f"strength={self.strength}, entropy={self.entropy}"
