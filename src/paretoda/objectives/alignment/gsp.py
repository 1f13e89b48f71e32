"""GSP: source and target are graphs that are matched edge by edge and node by node (Xia and Ding, 2020)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.differentiation import call_frozen, full_precision
from paretoda.objectives.parts.step_cache import StepCache
from paretoda.objectives.parts.transport import entropic_gromov_wasserstein
from paretoda.objectives.parts.two_classifiers import TwoClassifiers, both_cross_entropies
from paretoda.types import Objective, Source, Target

_ROUNDS, _SCALINGS = 5, 20
"""Enough iterations for the entropy that is used, at a tenth of the cost of a converged coupling."""


@full_precision
def similarities(rows: Tensor) -> Tensor:
    """(1 + cosine) / 2 of all pairs of rows (n, d): between 0 and 1, and 1 for a row with itself; shape (n, n)."""
    directions = functional.normalize(rows, dim=1)
    return (1 + directions @ directions.T) / 2


def masses(graph: Tensor) -> Tensor:
    """Degrees of the nodes as shares of their sum, shape (n,), for a graph of shape (n, n)."""
    degrees = graph.sum(1)
    return degrees / degrees.sum()


def shares(source: Tensor, target: Tensor, labels: Tensor, pseudo: Tensor, entropy: float) -> Tensor:
    """Share of every target sample in the image of each source sample, from a coupling of the graphs within classes.

    Args:
        source: Features of the source, shape (n, d).
        target: Features of the target, shape (m, d).
        labels: Labels of the source, shape (n,).
        pseudo: Pseudo-labels of the target, shape (m,).
        entropy: Weight of the entropy of the coupling.

    Returns:
        Rows with sum 1, or 0 where no target sample has the class; constants, shape (n, m).

    Examples:
        >>> labels = torch.tensor([0, 0, 1])
        >>> shares(torch.randn(3, 4), torch.randn(3, 4), labels, torch.tensor([0, 0, 0]), entropy=0.05).sum(1)
        tensor([1., 1., 0.])
    """
    one, other = similarities(source.detach()), similarities(target.detach())
    same = labels.unsqueeze(1) == pseudo
    # A pair of two classes costs as much as the worst pair, because a coupling within classes need not exist.
    across = (~same).to(one.dtype)
    coupling = entropic_gromov_wasserstein(
        one, other, masses(one), masses(other), extra=across, entropy=entropy, rounds=_ROUNDS, scalings=_SCALINGS
    )
    within = coupling * same
    totals = within.sum(1, keepdim=True)
    return (within / totals.clamp(min=torch.finfo(totals.dtype).tiny)).to(source.dtype)


def image_weights(coupled: Tensor) -> Tensor:
    """Weights of the source samples: equal with sum 1 for samples that have an image, and 0 for the others.

    Args:
        coupled: Coupling as `shares` returns it, shape (n, m).

    Returns:
        Shape (n,).
    """
    there = (coupled.sum(1) > 0).to(coupled.dtype)
    return there / there.sum().clamp(min=1)


@full_precision
def spread(rows: Tensor) -> Tensor:
    """Mean squared distance of the rows (n, d) from their mean; slightly above 0 where all rows are equal."""
    return (rows - rows.mean(0)).square().sum(1).mean().clamp(min=torch.finfo(rows.dtype).eps)


def side_losses(logits: Tensor, which: int) -> Tensor:
    """-log of the probability that one classifier's classes have among those of both.

    Args:
        logits: Logits of both classifiers, shape (2, n, K).
        which: 0 for the first classifier, 1 for the second.

    Returns:
        Shape (n,); exp(-side_losses 0) + exp(-side_losses 1) = 1.
    """
    return logits.logsumexp((0, 2)) - logits[which].logsumexp(1)


class Gsp(Objective):
    """Distance of source samples from the target samples coupled to them, and how well two classifiers tell them apart.

    Every source sample has an image: the mean of the target samples of its class to which a Gromov-Wasserstein coupling
    of the batch's two graphs assigns it. The coupling is a constant. A source sample is left out if no target sample
    has its class as pseudo-label. Distances are in units of the batch's spread, so that shrinking all features gains
    nothing.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        hidden: Width of the hidden layer of the two classifiers, one for samples and one for images.
        strength: Factor λ1 of the value and the gradient.
        entropy: Weight of the entropy of the coupling, relative to costs between 0 and 1.

    Raises:
        ValueError: The entropy is not positive.

    Examples:
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> target = Target(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> objective = Gsp(features=4, classes=3)
        >>> bool(objective(source, target) > 0), bool(objective.private_loss(source, target) > 0)
        (True, True)
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
        """`shares` of the batch; the pseudo-labels of the target are the second classifier's predictions."""
        pseudo = call_frozen(self.classifiers, target.features.detach(), "batch")[1].argmax(1)
        return shares(source.features, target.features, source.labels, pseudo, self.entropy)

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the strength times the distance to the images plus the losses of the two sides.

        A sample should be taken for an image, and an image for a sample.
        """
        coupled = self.coupled.keep(source, self.shares(source, target))
        images, weights = coupled @ target.features, image_weights(coupled)
        unit = spread(torch.cat([source.features, target.features]))
        distance = ((source.features - images).square().sum(1) * weights).sum() / unit
        sample_losses = side_losses(call_frozen(self.classifiers, source.features, "batch"), 1).mean()
        image_losses = (side_losses(call_frozen(self.classifiers, images, "batch"), 0) * weights).sum()
        return self.strength * (distance + sample_losses + image_losses)

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Return the classifiers' loss on detached features.

        Both learn samples and images by the source labels, and each claims its own.
        """
        coupled = self.coupled.take(source)
        coupled = self.shares(source, target) if coupled is None else coupled
        of_samples = self.classifiers(source.features.detach(), "learn")
        of_images = self.classifiers(coupled @ target.features.detach(), "learn")
        known = both_cross_entropies(of_samples, source.labels) + side_losses(of_samples, 0).mean()
        labels = source.labels.repeat(2)
        errors = functional.cross_entropy(of_images.flatten(0, 1), labels, reduction="none").view(2, -1).sum(0)
        return known + ((errors + side_losses(of_images, 1)) * image_weights(coupled)).sum()

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"strength={self.strength}, entropy={self.entropy}"
