"""Split the arguments of scikit-learn into a labelled source and an unlabelled target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from paretoda.data.open.arrays import to_array

Array = NDArray[Any]


def check_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> Array:
    """Return finite float features, shape (n, d), with the width and column names that `fit` saw.

    Args:
        estimator: Estimator whose `n_features_in_` and `feature_names_in_` are set or compared.
        X: An array, a data frame, a tensor or nested lists, shape (n, d).
        reset: Whether these attributes are set instead of compared.
    """
    rows: Array = validate_data(estimator, to_numpy(X), dtype=[np.float64, np.float32], reset=reset)
    return rows


def split_domains(estimator: BaseEstimator, X: Any, y: Any, third: Any) -> tuple[Array, Array, Array | None]:
    """Return source rows, their labels, and target rows; None if there is no target. Target labels are not read.

    Args:
        estimator: Estimator that is fitted.
        X: All rows, or those of the source if `third` is the target.
        y: Labels of X; those of target rows may be anything.
        third: None, the domains of X, shape (n,), or the rows of the target, shape (m, d).
    """
    return split_rows(estimator, X, y, third, _check_labels)


def split_rows(
    estimator: BaseEstimator, X: Any, y: Any, third: Any, check: Callable[[Any], Array]
) -> tuple[Array, Array, Array | None]:
    """Return source rows, what `check` makes of their labels, and target rows; otherwise as `split_domains`."""
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None: the source needs labels")
    rows = check_rows(estimator, X, reset=True)
    check_consistent_length(rows, y)
    if third is None:
        return rows, check(y), None
    if np.ndim(third) > 1:
        return rows, check(y), check_rows(estimator, third, reset=False)
    source = find_source_rows(third, len(rows))
    if source.all() or not source.any():
        missing, sign = ("target", "below") if source.all() else ("source", "above")
        raise ValueError(f"sample_domain has no {missing} row: those are marked by integers {sign} 0")
    return rows[source], check(_safe_indexing(to_numpy(y), np.flatnonzero(source))), rows[~source]


def check_target_rows(estimator: BaseEstimator, X: Any, third: Any) -> Array:
    """Return the rows of the target, where a finished run stands in the source's place.

    Args:
        estimator: Estimator that is fitted.
        X: Rows of the target, shape (n, d).
        third: None, or the domains of X, shape (n,), all below 0.
    """
    rows = check_rows(estimator, X, reset=True)
    if third is not None and (np.ndim(third) > 1 or find_source_rows(third, len(rows)).any()):
        raise ValueError("from_run stands in the source's place: give rows of the target only, without sample_domain")
    return rows


def find_source_rows(sample_domain: Any, count: int) -> NDArray[np.bool_]:
    """Return a mask of the source rows, shape (n,).

    The convention is skada's: integers above 0 mark sources and integers below 0 mark targets.

    Args:
        sample_domain: Domain of each row, shape (n,); all sources are one domain here, and all targets another.
        count: The number of rows n.
    """
    domain = np.asarray(to_numpy(sample_domain))
    if domain.shape != (count,):
        raise ValueError(f"sample_domain has the shape {domain.shape}, but there are {count} rows; give one for each")
    if domain.dtype.kind not in "iuf" or (domain == 0).any() or (domain != np.rint(domain)).any():
        raise ValueError("sample_domain must hold integers above 0 for the source and below 0 for the target")
    positive: NDArray[np.bool_] = domain > 0
    return positive


def encode_labels(y: Any, source: NDArray[np.bool_], classes: Array) -> torch.Tensor:
    """Return the labels of the source rows as indices into `classes`, int64; other labels are not read.

    Args:
        y: Labels of all rows, shape (n,).
        source: Mask of the source rows, shape (n,).
        classes: The sorted classes of `fit`, shape (K,).
    """
    check_consistent_length(source, y)
    labels = _check_labels(_safe_indexing(to_numpy(y), np.flatnonzero(source)))
    if strange := sorted(set(labels.tolist()) - set(classes.tolist())):
        raise ValueError(f"y has the class {strange[0]!r} in the source, which was not there in fit")
    return torch.from_numpy(np.searchsorted(classes, labels).astype(np.int64))


def find_codes(y: Any, classes: Array) -> NDArray[np.int64]:
    """Return the labels of labelled target samples as indices into `classes`.

    Args:
        y: Labels, shape (n,).
        classes: The sorted classes of the source, shape (K,).
    """
    labels = _check_labels(y)
    if strange := sorted(set(labels.tolist()) - set(classes.tolist())):
        raise ValueError(f"the labelled target samples have the class {strange[0]!r}, which the source does not have")
    return np.searchsorted(classes, labels).astype(np.int64)


def _check_labels(y: Any) -> Array:
    labels = check_array(to_numpy(y), ensure_2d=False, dtype=None, input_name="y")
    labels = column_or_1d(labels, warn=True)
    check_classification_targets(labels)
    return np.asarray(labels)


def to_numpy(data: Any) -> Any:
    """Return tensors of any device and type as arrays; scikit-learn handles everything else."""
    return to_array(data, "the data") if isinstance(data, torch.Tensor) else data
