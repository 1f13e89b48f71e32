"""The doctor on features: constant columns, and scales that differ between the domains."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from paretoda.data.findings import Finding
from paretoda.data.labels import listed

_APART = 10.0


def about_features(domain: Literal["source", "target"], x: NDArray[np.float32]) -> list[Finding]:
    """Columns that say nothing."""
    constant = np.flatnonzero((x == x[:1]).all(axis=0))
    if not len(constant):
        return []
    columns = listed([str(column) for column in constant])
    count = f"{len(constant)} of {x.shape[1]}"
    text = f"{count} features are constant in the {domain} (columns {columns}); they can be removed."
    return [Finding("warning" if len(constant) == x.shape[1] else "info", domain, text)]


def about_scales(source: NDArray[np.float32], target: NDArray[np.float32]) -> list[Finding]:
    """Whether the domains were measured in the same units."""
    (mean_s, std_s), (mean_t, std_t) = _moments(source), _moments(target)
    either = (std_s > 0) & (std_t > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(either, np.maximum(std_s / std_t, std_t / std_s), 1)
        shift = np.where(either, np.abs(mean_s - mean_t) / np.minimum(std_s, std_t), 0)
    apart = np.flatnonzero((ratio > _APART) | (shift > _APART))
    if not len(apart):
        return []
    columns = listed([str(column) for column in apart])
    text = (
        f"{len(apart)} of {len(ratio)} features have very different scales in source and target (columns {columns}); "
        "check their units, and keep the per-domain scaling."
    )
    return [Finding("warning", "both", text)]


def _moments(x: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    finite = x[np.isfinite(x).all(axis=1)].astype(np.float64)
    if not len(finite):
        return np.zeros(x.shape[1]), np.zeros(x.shape[1])
    return finite.mean(axis=0), finite.std(axis=0)
