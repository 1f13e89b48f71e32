"""Shallow contenders: logistic regression, label propagation, pseudo-labels, and methods of skada."""

# The imports inside functions keep scikit-learn and skada out of benches without baselines.
# ruff: noqa: PLC0415

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from paretoda.errors import DataError
from paretoda.objectives.parts.selective_pseudo_labels import label_selectively

Array = NDArray[np.float64]
Adaptation = Literal["subspace", "components", "transport"]
Scaling = Literal["none", "centred", "z-scored", "coral"]
Baseline = Callable[[NDArray[Any], NDArray[np.int64], NDArray[Any], int], Array]
"""Maps features and labels of the source, features of the target and K to the target's probabilities, shape (n, K)."""


def keep_unscaled(source: Array, target: Array) -> tuple[Array, Array]:
    """Return both domains as they are."""
    return source, target


def centre(source: Array, target: Array) -> tuple[Array, Array]:
    """Subtract from each domain its own mean, then divide both by the deviation of the source."""
    spread = source.std(axis=0) + 1e-8
    return (source - source.mean(axis=0)) / spread, (target - target.mean(axis=0)) / spread


def z_score(source: Array, target: Array) -> tuple[Array, Array]:
    """Return z-scores of each domain with its own mean and deviation."""
    scaled = [(x - x.mean(axis=0)) / (x.std(axis=0) + 1e-8) for x in (source, target)]
    return scaled[0], scaled[1]


def coral(source: Array, target: Array, ridge: float = 1.0) -> tuple[Array, Array]:
    """Return z-scores; those of the source are whitened and given the target's covariance (Sun et al., 2016).

    Args:
        source: Features, shape (n, d).
        target: Features, shape (m, d).
        ridge: Constant that is added to the diagonal of both covariances.
    """
    from scipy.linalg import fractional_matrix_power

    source, target = z_score(source, target)
    own, other = (np.cov(x, rowvar=False) + ridge * np.eye(x.shape[1]) for x in (source, target))
    moved: Array = source @ fractional_matrix_power(own, -0.5).real @ fractional_matrix_power(other, 0.5).real
    return moved, target


def skada_regression(
    source: NDArray[Any],
    labels: NDArray[np.int64],
    target: NDArray[Any],
    classes: int,
    *,
    adaptation: Adaptation,
    width: int = 50,
    C: float = 0.01,
) -> Array:
    """Logistic regression on z-scored features that skada has adapted.

    Args:
        source: Features or images, one row for each sample.
        labels: Labels of the source, integers 0..K-1.
        target: Features or images.
        classes: The number of classes K.
        adaptation: Subspace alignment (Fernando et al., 2013), transfer component analysis (Pan et al., 2011), or
            optimal transport of the source (Courty et al., 2017).
        width: Dimension of the subspace, or number of components.
        C: Inverse strength of the penalty.

    Returns:
        Class probabilities of the target, shape (n, K).
    """
    try:
        import skada
    except ImportError as error:
        raise DataError('this baseline needs skada: pip install "paretoda[baselines]"') from error
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    flat = [np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in (source, target)]
    x, points = z_score(flat[0], flat[1])
    width = min(width, x.shape[1], len(x), len(points))
    last = LogisticRegression(C=C, max_iter=300)
    made = {
        "subspace": lambda: skada.SubspaceAlignment(last, n_components=width, random_state=0),
        "components": lambda: skada.TransferComponentAnalysis(last, kernel="linear", n_components=width),
        "transport": lambda: skada.OTMapping(last, norm="median"),
    }[adaptation]()
    both = np.concatenate([x, points])
    domain = np.concatenate([np.ones(len(x)), -np.ones(len(points))]).astype(int)
    answers = np.concatenate([labels, np.full(len(points), -1)])  # skada marks unlabelled rows by -1
    # skada routes the domains as metadata; its import enables routing, but others may have disabled it since.
    with warnings.catch_warnings(), config_context(enable_metadata_routing=True):
        warnings.simplefilter("ignore", ConvergenceWarning)
        made.fit(both, answers, sample_domain=domain)
        found = made.predict_proba(points, sample_domain=domain[len(x) :])
    probabilities = np.zeros((len(points), classes))
    probabilities[:, np.unique(labels)] = found
    return probabilities


_SCALINGS: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "none": keep_unscaled,
    "centred": centre,
    "z-scored": z_score,
    "coral": coral,
}


def propagate_labels(features: Array, probabilities: Array, *, rounds: int = 10, neighbours: int = 5) -> Array:
    """Average probabilities repeatedly over nearest neighbours by cosine; each round keeps half of the old value.

    Args:
        features: Features of the target, shape (n, d).
        probabilities: Class probabilities of the target, shape (n, K).
        rounds: Number of rounds.
        neighbours: Number of neighbours of each sample, not counting itself.
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
    """Logistic regression on the source.

    Args:
        source: Features or images, one row for each sample.
        labels: Labels of the source, integers 0..K-1.
        target: Features or images.
        classes: The number of classes K.
        scaling: Scaling of the two domains.
        propagate: Whether the probabilities are then averaged over neighbours in the target.
        C: Inverse strength of the penalty.

    Returns:
        Class probabilities of the target, shape (n, K).
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
    return propagate_labels(points, probabilities) if propagate else probabilities


def label_z_scores_selectively(
    source: NDArray[Any],
    labels: NDArray[np.int64],
    target: NDArray[Any],
    classes: int,
    components: Sequence[int] = (256,),
) -> Array:
    """Selective pseudo-labelling (SPL) of z-scored features: class means and clusters in a learned projection.

    Args:
        source: Features or images, one row for each sample.
        labels: Labels of the source, integers 0..K-1.
        target: Features or images.
        classes: The number of classes K.
        components: Numbers of principal components, each for a labelling of its own; their mean is returned. The
            authors keep 512; 256 was the best of 128, 256 and 512 on four development tasks.

    Returns:
        Class probabilities of the target, shape (n, K).
    """
    flat = [np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in (source, target)]
    x, points = z_score(flat[0], flat[1])
    return label_selectively(x, labels, points, classes, components=components)


BASELINES: dict[str, Baseline] = {
    "logistic": logistic_regression,
    "logistic-centred": partial(logistic_regression, scaling="centred"),
    "logistic-z": partial(logistic_regression, scaling="z-scored"),
    "logistic-coral": partial(logistic_regression, scaling="coral"),
    "logistic-propagated": partial(logistic_regression, propagate=True),
    "logistic-centred-propagated": partial(logistic_regression, scaling="centred", propagate=True),
    "logistic-z-propagated": partial(logistic_regression, scaling="z-scored", propagate=True),
    "logistic-coral-propagated": partial(logistic_regression, scaling="coral", propagate=True),
    "spl": label_z_scores_selectively,
    "spl-mean": partial(label_z_scores_selectively, components=(128, 64, 32)),
    "skada-subspace": partial(skada_regression, adaptation="subspace"),
    "skada-components": partial(skada_regression, adaptation="components"),
    "skada-transport": partial(skada_regression, adaptation="transport"),
}
"""Name -> shallow contender."""
