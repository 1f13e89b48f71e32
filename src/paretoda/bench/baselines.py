"""Shallow contenders that cost nothing: logistic regression on scaled features, with and without label propagation.

A network that does not beat these has earned nothing.
"""

# Imports inside functions: the names are needed by every worker, and scikit-learn takes a second.
# ruff: noqa: PLC0415

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Scaling = Literal["none", "centred", "z-scored", "coral"]
Baseline = Callable[[NDArray[Any], NDArray[np.int64], NDArray[Any], int], Array]
"""From the source's features and labels, the target's features and K to the target's probabilities, shape (n, K)."""


def centred(source: Array, target: Array) -> tuple[Array, Array]:
    """Each domain minus its own mean, then both over one scale, the source's."""
    spread = source.std(axis=0) + 1e-8
    return (source - source.mean(axis=0)) / spread, (target - target.mean(axis=0)) / spread


def z_scored(source: Array, target: Array) -> tuple[Array, Array]:
    """Each domain with its own mean and scale."""
    scaled = [(x - x.mean(axis=0)) / (x.std(axis=0) + 1e-8) for x in (source, target)]
    return scaled[0], scaled[1]


def coral(source: Array, target: Array, ridge: float = 1.0) -> tuple[Array, Array]:
    """z-scores, the source's then whitened and given the target's covariance (Sun et al., 2016).

    Args:
        source: features, shape (n, d).
        target: features, shape (m, d).
        ridge: added to the diagonal of both covariances.
    """
    from scipy.linalg import fractional_matrix_power

    source, target = z_scored(source, target)
    own, other = (np.cov(x, rowvar=False) + ridge * np.eye(x.shape[1]) for x in (source, target))
    moved: Array = source @ fractional_matrix_power(own, -0.5).real @ fractional_matrix_power(other, 0.5).real
    return moved, target


_SCALINGS: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "none": lambda source, target: (source, target),
    "centred": centred,
    "z-scored": z_scored,
    "coral": coral,
}


def propagated(features: Array, probabilities: Array, *, rounds: int = 10, neighbours: int = 5) -> Array:
    """Probabilities averaged over nearest neighbours by cosine, again and again; each round keeps half of its own.

    Args:
        features: of the target, shape (n, d).
        probabilities: shape (n, K).
        rounds: how often.
        neighbours: of each sample, itself left out.
    """
    from sklearn.neighbors import NearestNeighbors

    rows = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    count = min(neighbours, len(rows) - 1)
    places = NearestNeighbors(n_neighbors=count + 1).fit(rows).kneighbors(rows, return_distance=False)[:, 1:]
    for _ in range(rounds):
        probabilities = (probabilities + probabilities[places].mean(axis=1)) / 2
    return probabilities


def logistic_regression(
    source: NDArray[Any],
    labels: NDArray[np.int64],
    target: NDArray[Any],
    classes: int,
    *,
    scaling: Scaling = "none",
    propagate: bool = False,
    C: float = 0.01,
) -> Array:
    """The target's class probabilities by a logistic regression on the source.

    Args:
        source: features or images, one row a sample.
        labels: in 0..K-1.
        target: features or images.
        classes: the number K.
        scaling: of the two domains.
        propagate: whether neighbours in the target are asked afterwards.
        C: inverse strength of the penalty.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    flat = [np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in (source, target)]
    x, points = _SCALINGS[scaling](flat[0], flat[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=C, max_iter=300).fit(x, labels)
    probabilities = np.zeros((len(points), classes))
    probabilities[:, model.classes_] = model.predict_proba(points)
    return propagated(points, probabilities) if propagate else probabilities


BASELINES: dict[str, Baseline] = {
    "logistic": logistic_regression,
    "logistic-centred": partial(logistic_regression, scaling="centred"),
    "logistic-z": partial(logistic_regression, scaling="z-scored"),
    "logistic-coral": partial(logistic_regression, scaling="coral"),
    "logistic-propagated": partial(logistic_regression, propagate=True),
    "logistic-centred-propagated": partial(logistic_regression, scaling="centred", propagate=True),
    "logistic-z-propagated": partial(logistic_regression, scaling="z-scored", propagate=True),
    "logistic-coral-propagated": partial(logistic_regression, scaling="coral", propagate=True),
}
"""Name -> shallow contender."""
