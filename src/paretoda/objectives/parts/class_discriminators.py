"""K discriminators, one for each class, evaluated as one batched layer, and their losses (Lv et al., 2021, Eq. 4).

Inside, rows lie along the last axis, so that the first layer is one matrix product, the second one batched product, and
BatchNorm over the rows reads memory in order; nothing is transposed in between.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.discriminator import Statistics, normalise


def _uniform(*shape: int, inputs: int) -> nn.Parameter:
    """Parameter that is uniform within 1 / sqrt(inputs), the initialisation of nn.Linear."""
    bound = 1 / math.sqrt(inputs)
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))


class ClassDiscriminators(nn.Module):
    """K perceptrons with two hidden layers, BatchNorm and ReLU; each tells source (positive) from target.

    Weights are stored as nn.Linear stores them, one matrix (outputs, inputs) for each class; the channels of BatchNorm
    are those of class 0, then of class 1, and so on.

    Args:
        features: Width d of the rows.
        classes: Number of classes K.
        width: Width w of the hidden layers.

    Examples:
        >>> ClassDiscriminators(features=4, classes=3, width=8)(torch.randn(5, 4), "batch").shape
        torch.Size([5, 3])
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
        """Return the scores of the rows (n, d) by the discriminator of every class, shape (n, K)."""
        once = torch.addmm(self.first_bias.flatten(0, 1), self.first.flatten(0, 1), rows.T)
        once = self._activate(once, self.first_norm, statistics)
        twice = torch.baddbmm(self.second_bias, self.second, once)
        twice = self._activate(twice, self.second_norm, statistics)
        return torch.baddbmm(self.last_bias, self.last, twice).squeeze(1).T

    def _activate(self, hidden: Tensor, layer: nn.BatchNorm1d, statistics: Statistics) -> Tensor:
        """Return the ReLU of the normalised rows, shape (K, w, n)."""
        channels = hidden.reshape(1, layer.num_features, -1)
        return torch.relu(normalise(channels, layer, statistics)).view(*self.first.shape[:2], -1)

    def extra_repr(self) -> str:
        """Return the sizes that `repr` shows."""
        classes, width, features = self.first.shape
        return f"features={features}, classes={classes}, width={width}"


def discriminator_loss(source: Tensor, labels: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """Cross-entropy in which a source sample counts for its own class and a target sample for all, weighted by its ρ.

    Args:
        source: Scores (log-odds of "source"), shape (n, K).
        labels: Labels of the source, shape (n,).
        target: Scores, shape (m, K).
        weights: ρ, shape (m, K); constants.
    """
    own = source.gather(1, labels.unsqueeze(1))
    return functional.softplus(-own).mean() + (weights * functional.softplus(target)).sum(1).mean()


def balanced_discriminator_loss(source: Tensor, labels: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """`discriminator_loss` in which both domains count equally for every class, and all classes of the batch equally.

    Otherwise a discriminator also learns how much rarer its class is among the target's predictions, and Bayes' rule
    makes it rarer still.

    Args:
        source: Scores (log-odds of "source"), shape (n, K).
        labels: Labels of the source, shape (n,).
        target: Scores, shape (m, K).
        weights: ρ, shape (m, K); constants.
    """
    own = functional.one_hot(labels, source.shape[1]).to(source)
    there = own.sum(0) > 0
    tiny = torch.finfo(weights.dtype).tiny
    of_source = (own * functional.softplus(-source)).sum(0) / own.sum(0).clamp(min=1)
    of_target = (weights * functional.softplus(target)).sum(0) / weights.sum(0).clamp(min=tiny)
    return (of_source + of_target)[there].mean()


def released_discriminator_loss(source: Tensor, labels: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """Loss of the authors' code: all source samples go to the discriminator of the last sample's class.

    Args:
        source: Scores, shape (n, K).
        labels: Labels of the source, shape (n,).
        target: Scores, shape (m, K).
        weights: logits ⊙ q, shape (m, K), of either sign; constants.
    """
    shown = functional.softplus(-source[:, labels[-1]]).mean()
    return (shown + (weights * functional.softplus(target)).sum(1).mean()) / (2 * source.shape[1])
