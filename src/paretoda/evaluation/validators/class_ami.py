"""ClassAMI: predicted classes that are also the clusters of the target's features (Musgrave et al., 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import gammaln
from torch import Tensor

from paretoda.evaluation.validators.validator import draw_samples, project_features
from paretoda.types import Snapshot

_MOST_PASSES = 50
"""Largest number of passes of k-means from one start."""


def adjusted_mutual_information(first: Tensor, second: Tensor) -> float:
    """Mutual information of two partitions beyond chance, over the mean of their entropies beyond chance.

    It is 1 for equal partitions and 0 on average for independent ones. Where a partition has one part only, or every
    sample is a part of its own in both, it is undefined and counts as 0; scikit-learn returns 1, which would make a
    collapsed model the best.

    Args:
        first: Part of every sample in the first partition, shape (n,), int64, not negative.
        second: Part of every sample in the second partition, shape (n,).

    Examples:
        >>> adjusted_mutual_information(torch.tensor([0, 0, 1, 1]), torch.tensor([1, 1, 0, 0]))
        1.0
        >>> adjusted_mutual_information(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1]))
        -0.5
    """
    width = int(second.max()) + 1
    table = torch.bincount(first * width + second, minlength=(int(first.max()) + 1) * width).reshape(-1, width)
    counts = table[table.sum(dim=1) > 0][:, table.sum(dim=0) > 0].double().numpy()
    n, rows, columns = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
    if min(counts.shape) < 2 or counts.shape == (n, n):
        return 0.0
    row_entropy, column_entropy = (-float((p * np.log(p)).sum()) for p in (rows / n, columns / n))
    filled = counts[counts > 0] / n
    joint_entropy = -float((filled * np.log(filled)).sum())
    chance = _expected_information(rows.astype(np.int64), columns.astype(np.int64))
    found = row_entropy + column_entropy - joint_entropy - chance
    best = (row_entropy + column_entropy) / 2 - chance
    return round(found / best, 12) if best > 0 else 0.0


def _expected_information(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> float:
    """Return the mean mutual information of partitions with parts of these sizes that know nothing of each other.

    The sizes of intersections have a hypergeometric distribution (Vinh et al., 2010).
    """
    n = int(rows.sum())
    log_factorial = gammaln(np.arange(n + 1) + 1.0)
    total = 0.0
    b = columns[:, None]
    for a in rows:
        common = np.arange(1, a + 1)[None, :]
        possible = (common <= b) & (n - a - b + common >= 0)
        size, other = np.broadcast_to(common, possible.shape)[possible], np.broadcast_to(b, possible.shape)[possible]
        ways = log_factorial[[a, n - a]].sum() + log_factorial[other] + log_factorial[n - other] - log_factorial[n]
        ways -= log_factorial[size] + log_factorial[a - size] + log_factorial[other - size]
        ways -= log_factorial[n - a - other + size]
        total += float((size / n * np.log(n * size / (a * other)) * np.exp(ways)).sum())
    return total


def find_clusters(points: Tensor, count: int, *, seed: int = 0, restarts: int = 3) -> Tensor:
    """Return the cluster of every point by k-means, the best of several starts by k-means++.

    Args:
        points: Points, shape (n, d).
        count: Largest number of clusters; there are fewer where fewer points differ.
        seed: Seed of the starts.
        restarts: Number of starts.

    Returns:
        Numbers of clusters, shape (n,), int64.

    Examples:
        >>> find_clusters(torch.tensor([[0.0], [0.1], [5.0], [5.1]]), 2).unique(return_counts=True)[1]
        tensor([2, 2])
    """
    generator = torch.Generator().manual_seed(seed)
    squares = points.square().sum(dim=1)
    found = [_iterate(points, squares, _draw_centres(points, squares, count, generator)) for _ in range(restarts)]
    return min(found, key=lambda each: each[1])[0]


def _draw_centres(points: Tensor, squares: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Draw points as centres, each with a probability proportional to its squared distance from those before it."""
    chosen = [int(torch.randint(len(points), (1,), generator=generator))]
    nearest = torch.full_like(squares, torch.inf)
    while len(chosen) < count:
        nearest = nearest.minimum(_distances(points, squares, points[chosen[-1:]])[:, 0])
        nearest[nearest <= 1e-12 * (squares + squares[chosen[-1]])] = 0  # the same point but for rounding
        if not nearest.any():
            break
        chosen.append(int(torch.multinomial(nearest, 1, generator=generator)))
    return points[chosen]


def _iterate(points: Tensor, squares: Tensor, centres: Tensor) -> tuple[Tensor, float]:
    """Return the clusters where k-means comes to rest, and the sum of squared distances from their centres."""
    clusters = torch.full((len(points),), -1)
    for _ in range(_MOST_PASSES):
        nearest, moved = _distances(points, squares, centres).min(dim=1)
        if torch.equal(moved, clusters):
            break
        clusters = moved
        sums = torch.zeros_like(centres).index_add_(0, clusters, points)
        sizes = torch.bincount(clusters, minlength=len(centres)).to(points)[:, None]
        centres = torch.where(sizes > 0, sums / sizes.clamp(min=1), centres)
    return clusters, float(nearest.sum())


def _distances(points: Tensor, squares: Tensor, centres: Tensor) -> Tensor:
    """Return squared distances, shape (n, number of centres)."""
    lengths = centres.square().sum(dim=1)
    return torch.addmm(squares[:, None] + lengths, points, centres.T, alpha=-2).clamp_(min=0)


@dataclass(frozen=True)
class ClassAMI:
    """Adjusted mutual information of the predicted classes and as many clusters of the target's features.

    Args:
        samples: Largest number of target samples.
        restarts: Number of starts of k-means; the tightest clusters count.
        seed: Seed of the samples, the starts and the projections.
        widest: Largest number of features; of more, so many random projections are taken.

    Examples:
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Target
        >>> features = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
        >>> target = Target(features, torch.eye(2)[[1, 1, 0, 0]], torch.arange(4))
        >>> ClassAMI()(SimpleNamespace(target=target))  # the classes are the clusters
        1.0
    """

    samples: int = 4_000
    restarts: int = 3
    seed: int = 0
    widest: int = 256

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, at most 1 and about 0 for predictions that have nothing to do with the clusters."""
        target = snapshot.target
        drawn = draw_samples(target.index, self.samples, self.seed)
        logits = target.logits.cpu()[drawn]
        predicted = logits.argmax(dim=1)
        if bool((predicted == predicted[0]).all()):  # nothing to compare
            return 0.0
        points = project_features(target.features.cpu()[drawn], self.widest, self.seed).double()
        points = points - points.mean(dim=0)
        clusters = find_clusters(points, logits.shape[1], seed=self.seed, restarts=self.restarts)
        return adjusted_mutual_information(predicted, clusters)
