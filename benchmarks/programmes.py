"""Gradients of six kinds, and the two linear programmes that the authors' code makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from paretoda.core.problem import Matrix, Vector
from paretoda.schemes.paretoda_paper import guided_bounds

Form: TypeAlias = Literal["bal", "dom"]
FORMS: tuple[Form, ...] = ("bal", "dom")
_DIMENSION = 20


@dataclass(frozen=True, eq=False)
class Programme:
    """max objective·w over the simplex subject to rows @ w >= bounds.

    Args:
        form: "bal" follows the guide (Eq. 6); "dom" descends, the guide being one more row (the one that is run).
        gradients: g_1 ... g_m, shape (m, d).
        guide: g_v, shape (d,).
    """

    form: Form
    gradients: Matrix
    guide: Vector

    @cached_property
    def gram(self) -> Matrix:
        """The inner products A = G Gᵀ, shape (m, m)."""
        return self.gradients @ self.gradients.T

    @cached_property
    def dots(self) -> Vector:
        """The inner products b = G g_v, shape (m,)."""
        return self.gradients @ self.guide

    @cached_property
    def objective(self) -> Vector:
        """What is maximised, shape (m,)."""
        return self.dots if self.form == "bal" else self.gram.sum(axis=0)

    @cached_property
    def rows(self) -> Matrix:
        """The left-hand sides."""
        return self.gram if self.form == "bal" else np.vstack([self.gram, self.dots])

    @cached_property
    def bounds(self) -> Vector:
        """The right-hand sides; -inf is no constraint."""
        if self.form == "bal":
            return guided_bounds(self.dots)
        return np.append(np.zeros(len(self.gradients)), min(self.dots.max(), 0.0))


Family: TypeAlias = Callable[[np.random.Generator, int], NDArray[np.float64]]


def _generic(random: np.random.Generator, size: int) -> Matrix:
    return random.normal(size=(size + 1, _DIMENSION))


def _conflicting(random: np.random.Generator, size: int) -> Matrix:
    rows = _generic(random, size)
    rows[:-1] -= 0.98 * rows[:-1].mean(axis=0)
    return rows


def _collinear(random: np.random.Generator, size: int) -> Matrix:
    rows = _generic(random, size)
    rows[:-1] = random.normal(size=(size, 1)) * rows[0]
    return rows


def _zeros(random: np.random.Generator, size: int) -> Matrix:
    rows = _generic(random, size)
    rows[random.random(size + 1) < 0.4] = 0.0
    return rows


def _wild(random: np.random.Generator, size: int) -> Matrix:
    return _generic(random, size) * 10.0 ** random.uniform(-8, 8, size=(size + 1, 1))


def _correlated(random: np.random.Generator, size: int) -> Matrix:
    rows = _generic(random, size)
    rows[-1] = rows[-2] + 0.3 * rows[-1]
    return rows


FAMILIES: dict[str, Family] = {
    "generic": _generic,
    "conflicting": _conflicting,
    "collinear": _collinear,
    "zeros": _zeros,
    "wild scales": _wild,
    "guide correlated": _correlated,
}


def programmes(form: Form, size: int, count: int, seed: int) -> list[tuple[str, Programme]]:
    """`count` programmes of m = size objectives, the families in turn; the same for the same seed."""
    random = np.random.default_rng([seed, size])
    found = []
    for number in range(count):
        family = list(FAMILIES)[number % len(FAMILIES)]
        rows = FAMILIES[family](random, size)
        found.append((family, Programme(form, rows[:-1], rows[-1])))
    return found
