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

from paretoda.bench.scalings import Array, centred, coral, plain, z_scored
from paretoda.bench.skada_baselines import skada_regression

Scaling = Literal["none", "centred", "z-scored", "coral"]
Baseline = Callable[[NDArray[Any], NDArray[np.int64], NDArray[Any], int], Array]
"""From the source's features and labels, the target's features and K to the target's probabilities, shape (n, K)."""


_SCALINGS: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "none": plain,
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
    "skada-subspace": partial(skada_regression, adaptation="subspace"),
    "skada-components": partial(skada_regression, adaptation="components"),
    "skada-transport": partial(skada_regression, adaptation="transport"),
}
"""Name -> shallow contender."""
