"""Two domains brought to one scale, before a shallow method sees them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def plain(source: Array, target: Array) -> tuple[Array, Array]:
    """As they are."""
    return source, target


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
    from scipy.linalg import fractional_matrix_power  # noqa: PLC0415 - takes a second, and few want it

    source, target = z_scored(source, target)
    own, other = (np.cov(x, rowvar=False) + ridge * np.eye(x.shape[1]) for x in (source, target))
    moved: Array = source @ fractional_matrix_power(own, -0.5).real @ fractional_matrix_power(other, 0.5).real
    return moved, target
