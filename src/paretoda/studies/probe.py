"""How well the domains can be told apart, by somebody who did not take part in the training."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from paretoda.domains import Domain, Objective, Snapshot
from paretoda.objectives import Cdan
from paretoda.studies.lab import few

_PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)
_CENTRES = 300


def probe(alignment: Objective, snapshot: Snapshot) -> float:
    """What the best probe knows of the domain, log 2 minus its cross-entropy; never negative.

    Discriminators of different runs have learned differently well; this one is the same for all.

    Args:
        alignment: CDAN's probe sees features and predictions, everybody else's the features.
        snapshot: of the model.
    """
    rows = [_seen(alignment, few(domain)) for domain in (snapshot.source, snapshot.target)]
    return cross_fitted(rows[0], rows[1])


def _seen(alignment: Objective, domain: Domain) -> NDArray[np.float64]:
    seen = alignment.joined(domain) if isinstance(alignment, Cdan) else domain.features
    return seen.detach().double().numpy()


def cross_fitted(source: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """The divergence that the best probe proves on the half of the rows that it has not seen.

    Probes: logistic regressions of the rows and of Gaussian kernels around some of them, at several penalties; the
    divergence is a supremum over discriminators, so the best counts, and one that knows nothing proves 0.

    Args:
        source: shape (n, d).
        target: shape (m, d).
    """
    rows = np.concatenate([source, target])
    rows = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-8)
    labels = np.repeat([0, 1], [len(source), len(target)])
    return max([0.0, *(_proved(seen, labels, c) for seen in (rows, _kernels(rows)) for c in _PENALTIES)])


def _kernels(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gaussians exp(-|x - c|² / median) around some rows c, each column with unit spread."""
    centres = rows[np.random.default_rng(1).permutation(len(rows))[:_CENTRES]]
    squares = (rows**2).sum(1)[:, None] + (centres**2).sum(1)[None, :] - 2 * rows @ centres.T
    near = np.exp(-squares / np.median(squares))
    scaled: NDArray[np.float64] = (near - near.mean(axis=0)) / (near.std(axis=0) + 1e-8)
    return scaled


def _proved(rows: NDArray[np.float64], labels: NDArray[np.int64], penalty: float) -> float:
    """What is proved: log 2 minus the balanced cross-entropy on unseen rows."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  (slow to import)

    fold = np.random.default_rng(0).permutation(len(rows)) % 2
    losses = np.empty(len(rows))
    for part in (0, 1):
        model = LogisticRegression(C=penalty, class_weight="balanced", max_iter=5000, tol=1e-3)
        model.fit(rows[fold != part], labels[fold != part])
        unseen = fold == part
        losses[unseen] = -model.predict_log_proba(rows[unseen])[np.arange(unseen.sum()), labels[unseen]]
    return math.log(2) - float(losses[labels == 0].mean() + losses[labels == 1].mean()) / 2
