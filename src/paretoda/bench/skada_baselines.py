"""Shallow contenders of the library skada: subspaces, transfer components and optimal transport, then a regression."""

# Imports inside functions: skada is an extra, and importing it takes a second.
# ruff: noqa: PLC0415

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from paretoda.bench.scalings import Array, z_scored
from paretoda.data.errors import DataError

Adaptation = Literal["subspace", "components", "transport"]


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
    """The target's class probabilities by a logistic regression on what skada makes of z-scored features.

    Args:
        source: features or images, one row a sample.
        labels: in 0..K-1.
        target: features or images.
        classes: the number K.
        adaptation: subspace alignment (Fernando et al., 2013), transfer component analysis (Pan et al., 2011), or
            optimal transport of the source (Courty et al., 2017).
        width: of the subspace or the components.
        C: inverse strength of the penalty.
    """
    try:
        import skada
    except ImportError as error:
        raise DataError('this baseline needs skada: pip install "paretoda[baselines]"') from error
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    flat = [np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in (source, target)]
    x, points = z_scored(flat[0], flat[1])
    width = min(width, x.shape[1], len(x), len(points))
    last = LogisticRegression(C=C, max_iter=300)
    made = {
        "subspace": lambda: skada.SubspaceAlignment(last, n_components=width, random_state=0),
        "components": lambda: skada.TransferComponentAnalysis(last, kernel="linear", n_components=width),
        "transport": lambda: skada.OTMapping(last, norm="median"),
    }[adaptation]()
    both = np.concatenate([x, points])
    domain = np.concatenate([np.ones(len(x)), -np.ones(len(points))]).astype(int)
    answers = np.concatenate([labels, np.full(len(points), -1)])  # skada hides the target's by -1
    # skada tells its steps the domains by routing, which its import switches on and anybody may have switched off.
    with warnings.catch_warnings(), config_context(enable_metadata_routing=True):
        warnings.simplefilter("ignore", ConvergenceWarning)
        made.fit(both, answers, sample_domain=domain)
        found = made.predict_proba(points, sample_domain=domain[len(x) :])
    probabilities = np.zeros((len(points), classes))
    probabilities[:, np.unique(labels)] = found
    return probabilities
