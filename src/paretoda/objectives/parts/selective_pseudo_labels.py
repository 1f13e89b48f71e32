"""SPL: class means and clusters in a projection learned from ever more pseudo-labels (Wang and Breckon, 2020).

There is no network: a round is one generalised eigenproblem, the means of the source's classes, and one k-means of the
target. The pseudo-labels that a round trusts shape the projection of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import softmax

from paretoda.errors import DataError

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


def label_selectively(
    source: NDArray[Any],
    labels: Labels,
    target: NDArray[Any],
    classes: int,
    *,
    components: Sequence[int] = (256,),
    rounds: int = 11,
    balanced: bool = True,
) -> Array:
    """Selective pseudo-labelling: class means and clusters in a supervised projection, without a network.

    One number of components can lead all rounds astray where another one does not, so several may be given; what they
    find is averaged.

    Args:
        source: Features or images, one row for each sample.
        labels: Labels of the source, integers 0..K-1.
        target: Features or images.
        classes: The number of classes K.
        components: Largest numbers of principal components of both domains that are kept, each for a labelling of its
            own. Projections have half as many dimensions, and at least one for each class.
        rounds: Number of rounds T. Round t is projected by the source and by the share t / (T - 1) of the target, so
            that the first trusts no pseudo-label and the last trusts all.
        balanced: Whether that share is taken of each predicted class; otherwise of the whole target, which then may
            lack classes.

    Returns:
        Class probabilities of the target, shape (n, K); 0 for classes that the source does not have.

    Raises:
        DataError: A domain is empty, or there are fewer than 2 rounds.
    """
    if min(len(source), len(target)) < 1 or rounds < 2:
        raise DataError("selective pseudo-labelling needs samples of both domains, and 2 rounds or more")
    present, own = np.unique(labels, return_inverse=True)
    rows = find_components(_flatten(source), _flatten(target), max(components))
    probabilities = np.zeros((len(target), classes))
    for count in components:
        x, points = np.split(normalise(rows[:, :count]), [len(source)])
        probabilities[:, present] += _label(x, own, points, max(count // 2, len(present)), rounds, balanced)
    return probabilities / len(components)


def halve_components(count: int, classes: int) -> tuple[int, ...]:
    """Return a number of components, its half and its quarter; none is below the number of classes unless all are.

    Args:
        count: Number of components.
        classes: Number of classes K.

    Examples:
        >>> halve_components(128, 31)
        (128, 64, 32)
        >>> halve_components(16, 7)
        (16, 8, 7)
    """
    return tuple(max(count // part, min(count, classes)) for part in (1, 2, 4))


def find_components(source: Array, target: Array, count: int) -> Array:
    """Return the first principal components of both domains together, whose rows are normalised before.

    Args:
        source: Features, shape (n, d).
        target: Features, shape (m, d).
        count: Largest number of components; never more than min(n + m, d).

    Returns:
        Shape (n + m, components).
    """
    both = np.concatenate([normalise(source), normalise(target)])
    both -= both.mean(axis=0)
    found: Array = both @ np.linalg.svd(both, full_matrices=False)[2][:count].T
    return found


def _label(source: Array, labels: Labels, target: Array, width: int, rounds: int, balanced: bool) -> Array:
    """Return the probabilities of the source's classes, shape (m, C), that the last round finds in one space."""
    trusted, guessed = np.zeros(len(target), dtype=bool), np.zeros(len(target), dtype=np.int64)
    found = np.empty((len(target), labels.max() + 1))
    for done in range(rounds):
        rows, answers = np.concatenate([source, target[trusted]]), np.concatenate([labels, guessed[trusted]])
        vectors = fit_projection(rows, answers, width)[1]
        found = classify_in_projection(*_project(source, target, vectors), labels)
        guessed = found.argmax(axis=1)
        groups = guessed if balanced else np.zeros_like(guessed)
        trusted = select_trusted(found.max(axis=1), groups, (done + 1) / (rounds - 1))
    shares: Array = found / found.sum(axis=1, keepdims=True)
    return shares


def fit_projection(rows: Array, labels: Labels, width: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues and eigenvectors of XᵀDX v = λ (XᵀLX + I) v, best first.

    W is 1 where labels are equal and 0 elsewhere, D has its row sums on the diagonal, and L = D - W. Neither of them
    is formed: XᵀDX weighs every sample by the size of its class, and XᵀWX is a sum over classes.

    Args:
        rows: X, labelled samples, shape (n, d).
        labels: Their labels, shape (n,).
        width: Largest number of eigenvectors; never more than d.

    Returns:
        Eigenvalues, shape (w,), and eigenvectors as columns, shape (d, w).
    """
    _, place, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    sums = np.zeros((len(sizes), rows.shape[1]))
    np.add.at(sums, place, rows)
    spread, d = rows.T @ (rows * sizes[place][:, None]), rows.shape[1]
    within = spread - sums.T @ sums + np.eye(d)
    values, vectors = eigh(spread, within, subset_by_index=(max(d - width, 0), d - 1))
    return values[::-1], vectors[:, ::-1]


def classify_in_projection(source: Array, target: Array, labels: Labels) -> Array:
    """Return for each class the larger of the probabilities by class means of the source and by clusters of the target.

    Args:
        source: Projected samples, shape (n, w).
        target: Projected samples, shape (m, w).
        labels: Labels of the source, shape (n,); every class 0..C-1 is present.

    Returns:
        Shape (m, C); rows add up to 1 or more.
    """
    means = np.stack([source[labels == label].mean(axis=0) for label in range(labels.max() + 1)])
    centres = normalise(means)
    return np.maximum(*(softmax(-_distances(target, at), axis=1) for at in (centres, find_clusters(target, centres))))


def find_clusters(rows: Array, centres: Array, rounds: int = 100) -> Array:
    """Return the centres of k-means that starts at the given ones, normalised; a cluster without samples stays.

    Args:
        rows: Samples, shape (n, w).
        centres: First centres, shape (C, w).
        rounds: Largest number of rounds.
    """
    centres, nearest = centres.copy(), np.full(len(rows), -1)
    for _ in range(rounds):
        before, nearest = nearest, _distances(rows, centres).argmin(axis=1)
        if (nearest == before).all():
            break
        for place in np.unique(nearest):
            centres[place] = rows[nearest == place].mean(axis=0)
    return normalise(centres)


def select_trusted(confidence: Array, labels: Labels, share: float) -> NDArray[np.bool_]:
    """Return which samples belong to the given share of the most confident ones of their class, rounded down.

    Args:
        confidence: Largest probability of each sample, shape (n,).
        labels: Predicted classes, shape (n,).
        share: Share of the samples of each class, 0..1.
    """
    trusted = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        best_first = own[np.argsort(-confidence[own], kind="stable")]
        trusted[best_first[: int(share * len(own) + 1e-9)]] = True
    return trusted


def normalise(rows: Array) -> Array:
    """Return the rows with norm 1; a row of zeros stays."""
    unit: Array = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit


def _flatten(samples: NDArray[Any]) -> Array:
    return np.asarray(samples, dtype=np.float64).reshape(len(samples), -1)


def _project(source: Array, target: Array, vectors: Array) -> tuple[Array, Array]:
    """Return both domains in the projection, centred together and normalised."""
    moved = source @ vectors, target @ vectors
    centre = np.concatenate(moved).mean(axis=0)
    return normalise(moved[0] - centre), normalise(moved[1] - centre)


def _distances(rows: Array, centres: Array) -> Array:
    """Return Euclidean distances, shape (n, C)."""
    squares = (rows**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * rows @ centres.T
    distances: Array = np.sqrt(np.maximum(squares, 0))
    return distances
