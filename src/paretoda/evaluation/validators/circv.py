"""Circular validation: the domains swapped, a classifier of the target's predictions tried on the source's labels.

Reverse validation (Zhong et al., 2010; Ganin et al., 2016) adapts back with the whole method. Here the way back is a
linear classifier of the features that are there, in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from paretoda.evaluation.validators.validator import draw_samples, project_features
from paretoda.types import Snapshot


def fit_ridge(features: Tensor, labels: Tensor, classes: int, decay: float) -> Tensor:
    """Return the ridge regression of one-hot labels: a matrix of shape (d + 1, K), whose last row is the constant.

    It minimises the mean of |W x + c - one-hot|² plus decay |W|²; the constant is not penalised.

    Args:
        features: Features, shape (n, d), float64.
        labels: Labels, shape (n,), in 0..classes-1.
        classes: Number of classes K.
        decay: Weight of the penalty, positive.

    Examples:
        >>> fit_ridge(torch.tensor([[-1.0], [1.0]]).double(), torch.tensor([0, 1]), 2, decay=1.0).tolist()
        [[-0.25, 0.25], [0.5, 0.5]]
    """
    wanted = one_hot(labels, classes).to(features)
    middle, shares = features.mean(dim=0), wanted.mean(dim=0)
    x, y, n = features - middle, wanted - shares, len(features)
    if x.shape[1] <= n:
        weights = torch.linalg.solve(x.T @ x + n * decay * torch.eye(x.shape[1]).to(x), x.T @ y)
    else:  # the same solution from the smaller system
        weights = x.T @ torch.linalg.solve(x @ x.T + n * decay * torch.eye(n).to(x), y)
    return torch.cat([weights, (shares - middle @ weights)[None]])


@dataclass(frozen=True)
class CircV:
    """Accuracy on the held-out source of a linear classifier of target features with predicted labels.

    The features are divided by the root mean square of their distance from the target's mean, so that the decay means
    the same for all networks.

    Args:
        decay: Weight decay of the classifier.
        samples: Largest number of target samples that it is trained on.
        seed: Seed of their choice, and of the projections.
        widest: Largest number of features; of more, so many random projections are taken.

    Examples:
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Source, Target
        >>> features, labels = torch.tensor([[-1.0], [-1.1], [1.0], [1.1]]), torch.tensor([0, 0, 1, 1])
        >>> target = Target(features, torch.eye(2)[labels], torch.arange(4))
        >>> source = Source(features, torch.eye(2)[labels], torch.arange(4), labels=torch.tensor([0, 0, 1, 0]))
        >>> CircV()(SimpleNamespace(target=target, held_out_source=source))
        0.75
    """

    decay: float = 0.01
    samples: int = 4_000
    seed: int = 0
    widest: int = 256

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, in 0..1."""
        target, source = snapshot.target, snapshot.held_out_source
        drawn = draw_samples(target.index, self.samples, self.seed)
        logits = target.logits.cpu()[drawn]
        train, test = (
            project_features(rows.cpu(), self.widest, self.seed).double()
            for rows in (target.features.cpu()[drawn], source.features)
        )
        scale = float((train - train.mean(dim=0)).square().sum(dim=1).mean()) ** 0.5
        train, test = train / (scale or 1.0), test / (scale or 1.0)
        weights = fit_ridge(train, logits.argmax(dim=1), logits.shape[1], self.decay)
        found = (test @ weights[:-1] + weights[-1]).argmax(dim=1)
        return float((found == source.labels.cpu()).double().mean())
