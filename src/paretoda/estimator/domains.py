"""Split the arguments of scikit-learn into a labelled source and an unlabelled target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def split_domains(
    estimator: BaseEstimator, X: Any, y: Any, third: Any
) -> tuple[Array, Array, Array | None, NDArray[np.int64]]:
    """Return source rows, their labels, target rows, and the domain of each source row. Target labels are not read.

    The target rows are None if there is no target.

    Args:
        estimator: Estimator that is fitted.
        X: All rows, or those of the source if `third` is the target.
        y: Labels of X; those of target rows may be anything.
        third: None, the domains of X, shape (n,), or the rows of the target, shape (m, d).
    """
    return split_rows(estimator, X, y, third, _check_labels)


def split_rows(
    estimator: BaseEstimator, X: Any, y: Any, third: Any, check: Callable[[Any], Array]
) -> tuple[Array, Array, Array | None, NDArray[np.int64]]:
    """Return the same as `split_domains`, with what `check` makes of the labels."""
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None: the source needs labels")
    rows = check_rows(estimator, X, reset=True)
    check_consistent_length(rows, y)
    if third is None:
        return rows, check(y), None, np.ones(len(rows), np.int64)
    if np.ndim(third) > 1:
        return rows, check(y), check_rows(estimator, third, reset=False), np.ones(len(rows), np.int64)
    domain = check_domains(third, len(rows))
    source = domain > 0
    if source.all() or not source.any():
        missing, sign = ("target", "below") if source.all() else ("source", "above")
        raise ValueError(f"sample_domain has no {missing} row: those are marked by integers {sign} 0")
    labels = check(_safe_indexing(to_numpy(y), np.flatnonzero(source)))
    return rows[source], labels, rows[~source], domain[source]


def check_target_rows(estimator: BaseEstimator, X: Any, third: Any) -> Array:
    """Return the rows of the target, where a finished run stands in the source's place.

    Args:
        estimator: Estimator that is fitted.
        X: Rows of the target, shape (n, d).
        third: None, or the domains of X, shape (n,), all below 0.
    """
    rows = check_rows(estimator, X, reset=True)
    if third is not None and (np.ndim(third) > 1 or (check_domains(third, len(rows)) > 0).any()):
        raise ValueError("from_run stands in the source's place: give rows of the target only, without sample_domain")
    return rows


def check_domains(sample_domain: Any, count: int) -> NDArray[np.int64]:
    """Return the domain of each row, shape (n,).

    The convention is skada's: integers above 0 mark sources and integers below 0 mark targets.

    Args:
        sample_domain: Domain of each row, shape (n,); all targets are one domain.
        count: The number of rows n.
    """
    domain = np.asarray(to_numpy(sample_domain))
    if domain.shape != (count,):
        raise ValueError(f"sample_domain has the shape {domain.shape}, but there are {count} rows; give one for each")
    if domain.dtype.kind not in "iuf" or (domain == 0).any() or (domain != np.rint(domain)).any():
        raise ValueError("sample_domain must hold integers above 0 for the source and below 0 for the target")
    return domain.astype(np.int64)


def place_domains(domain: NDArray[np.int64], known: Sequence[int]) -> NDArray[np.int64]:
    """Return the position of each row's source in `known`, and -1 for rows of the target.

    Args:
        domain: Domain of each row, shape (n,).
        known: Domains of the sources of `fit`; a single one stands for any source.
    """
    if len(known) == 1:
        return np.where(domain > 0, 0, -1)
    if strange := sorted(set(domain[domain > 0].tolist()) - set(known)):
        raise ValueError(
            f"sample_domain has the source {strange[0]}, which was not there in fit; fit had {list(known)}"
        )
    return np.where(domain > 0, np.searchsorted(known, domain), -1)


def encode_labels(y: Any, places: NDArray[np.int64], classes: Array) -> torch.Tensor:
    """Return the labels of the source rows as indices into `classes`, int64; other labels are not read.

    Args:
        y: Labels of all rows, shape (n,).
        places: Positions of the source rows.
        classes: The sorted classes of `fit`, shape (K,).
    """
    labels = _check_labels(_safe_indexing(to_numpy(y), places))
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
