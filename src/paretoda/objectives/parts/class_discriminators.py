"""K discriminators, one for each class, evaluated as one batched layer, and what they lower (Lv et al., 2021, Eq. 4).

Rows lie along the last axis inside, so that the first layer is one matrix product, the second one batched product,
and BatchNorm over the rows reads memory in order; nothing is transposed in between.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.discriminator import Statistics, normalise


def _uniform(*shape: int, inputs: int) -> nn.Parameter:
    """Uniform within 1 / sqrt(inputs), as nn.Linear starts."""
    bound = 1 / math.sqrt(inputs)
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))


class ClassDiscriminators(nn.Module):
    """K perceptrons with two hidden layers, BatchNorm and ReLU; each tells source (positive) from target.

    Weights are stored as nn.Linear stores them, one matrix (outputs, inputs) for each class; BatchNorm's channels are
    those of class 0, then of class 1, and so on.

    Args:
        features: width d of the rows.
        classes: K.
        width: w, of the hidden layers.
    """

    def __init__(self, features: int, classes: int, width: int) -> None:
        super().__init__()
        self.first = _uniform(classes, width, features, inputs=features)
        self.first_bias = _uniform(classes, width, 1, inputs=features)
        self.first_norm = nn.BatchNorm1d(classes * width)
        self.second = _uniform(classes, width, width, inputs=width)
        self.second_bias = _uniform(classes, width, 1, inputs=width)
        self.second_norm = nn.BatchNorm1d(classes * width)
        self.last = _uniform(classes, 1, width, inputs=width)
        self.last_bias = _uniform(classes, 1, 1, inputs=width)

    def forward(self, rows: Tensor, statistics: Statistics) -> Tensor:
        """Scores of the rows (n, d) by every class's discriminator, shape (n, K)."""
        once = torch.addmm(self.first_bias.flatten(0, 1), self.first.flatten(0, 1), rows.T)
        once = self._activate(once, self.first_norm, statistics)
        twice = torch.baddbmm(self.second_bias, self.second, once)
        twice = self._activate(twice, self.second_norm, statistics)
        return torch.baddbmm(self.last_bias, self.last, twice).squeeze(1).T

    def _activate(self, hidden: Tensor, layer: nn.BatchNorm1d, statistics: Statistics) -> Tensor:
        """ReLU of the normalised rows, shape (K, w, n)."""
        channels = hidden.reshape(1, layer.num_features, -1)
        return torch.relu(normalise(channels, layer, statistics)).view(*self.first.shape[:2], -1)

    def extra_repr(self) -> str:
        """Shape of the whole."""
        classes, width, features = self.first.shape
        return f"features={features}, classes={classes}, width={width}"


def discriminator_loss(source: Tensor, labels: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """A source sample is shown to its own class's discriminator, a target sample to all, weighted by its ρ.

    Args:
        source: scores (log-odds of "source"), shape (n, K).
        labels: of the source, shape (n,).
        target: scores, shape (m, K).
        weights: ρ, shape (m, K); constants.
    """
    own = source.gather(1, labels.unsqueeze(1))
    return functional.softplus(-own).mean() + (weights * functional.softplus(target)).sum(1).mean()


def balanced_discriminator_loss(source: Tensor, labels: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """The same with both domains counting equally for every class, and all classes that the source has here equally.

    Otherwise a discriminator also learns how much rarer its class is among the target's predictions, and Bayes' rule
    makes it rarer still.

    Args:
        source: scores (log-odds of "source"), shape (n, K).
        labels: of the source, shape (n,).
        target: scores, shape (m, K).
        weights: ρ, shape (m, K); constants.
    """
    own = functional.one_hot(labels, source.shape[1]).to(source)
    there = own.sum(0) > 0
    tiny = torch.finfo(weights.dtype).tiny
    of_source = (own * functional.softplus(-source)).sum(0) / own.sum(0).clamp(min=1)
    of_target = (weights * functional.softplus(target)).sum(0) / weights.sum(0).clamp(min=tiny)
    return (of_source + of_target)[there].mean()


def released_discriminator_loss(source: Tensor, labels: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """What the authors' code computes: all source samples go to the discriminator of the last one's class.

    Args:
        source: scores, shape (n, K).
        labels: of the source, shape (n,).
        target: scores, shape (m, K).
        weights: logits ⊙ q, shape (m, K), of either sign; constants.
    """
    shown = functional.softplus(-source[:, labels[-1]]).mean()
    return (shown + (weights * functional.softplus(target)).sum(1).mean()) / (2 * source.shape[1])
