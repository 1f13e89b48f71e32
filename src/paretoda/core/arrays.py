"""Arrays as the mathematics wants them: float64, of the right shape, finite, and possible for gradients."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]

_ROUNDING = 1e-3
"""How far a Gram matrix may miss symmetry or Cauchy-Schwarz, relative to the norms: half-precision rounding."""
_UNDERFLOW = 1e-300
"""By how much a squared norm may be too small, because the squares of tiny entries are 0 in float64."""


class ProblemError(ValueError):
    """The inner products cannot be those of gradients; the message names the entry."""


def checked_vector(values: ArrayLike, name: str, length: int | None = None) -> Vector:
    """A read-only copy, shape (m,), every entry finite; an error names the entry."""
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1 or (length is not None and len(array) != length):
        wanted = "(m,)" if length is None else f"({length},)"
        raise ProblemError(f"{name} must have shape {wanted}, got {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ProblemError(f"{name}[{bad[0]}] is {array[bad[0]]}: every entry must be finite")
    array.setflags(write=False)
    return array


def checked_gram(values: ArrayLike) -> Matrix:
    """A read-only symmetric copy, shape (m, m), that gradients can have; an error names the entry."""
    gram = np.array(values, dtype=np.float64)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not gram.size:
        raise ProblemError(f"gram must be square, (m, m) with m >= 1, got shape {gram.shape}")
    for row, column in np.argwhere(~np.isfinite(gram)):
        raise ProblemError(f"gram[{row}, {column}] is {gram[row, column]}: every entry must be finite")
    diagonal = np.diagonal(gram)
    for row in np.flatnonzero(diagonal < 0):
        raise ProblemError(f"gram[{row}, {row}] is {diagonal[row]}: a squared norm cannot be negative")
    norms = np.sqrt(diagonal + _UNDERFLOW)
    bounds = np.outer(norms, norms)
    for row, column in np.argwhere(np.abs(gram - gram.T) > _ROUNDING * bounds + np.finfo(float).tiny):
        raise ProblemError(
            f"gram[{row}, {column}] is {gram[row, column]} but gram[{column}, {row}] is {gram[column, row]}: "
            "a Gram matrix is symmetric"
        )
    _check_products("gram[{}, {}]", gram, bounds)
    gram = (gram + gram.T) / 2
    gram.setflags(write=False)
    return gram


def check_dots(dots: Vector, square: float, squares: Vector) -> None:
    """Raise unless a gradient of this squared norm can have these inner products with gradients of those."""
    if len(dots) != len(squares):
        raise ProblemError(f"guide.dots has {len(dots)} entries for {len(squares)} objectives")
    if not np.isnan(square):
        _check_products("guide.dots[{}]", dots, np.sqrt(squares + _UNDERFLOW) * np.sqrt(square + _UNDERFLOW))


def _check_products(name: str, products: Matrix | Vector, bounds: Matrix | Vector) -> None:
    """Cauchy-Schwarz, |<a, b>| <= |a| |b|, up to rounding and underflow."""
    for index in np.argwhere(np.abs(products) > (1 + _ROUNDING) * bounds + np.finfo(float).tiny):
        raise ProblemError(
            f"{name.format(*index)} is {products[tuple(index)]}, larger than the product of the norms, "
            f"{bounds[tuple(index)]}: no gradients have these inner products"
        )
