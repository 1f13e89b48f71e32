"""Problem and weights: what a scheme sees of a step, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]

_ROUNDING = 1e-3
"""Tolerance of symmetry and Cauchy-Schwarz in a Gram matrix, relative to the norms: half-precision rounding."""
_UNDERFLOW = 1e-300
"""Amount by which a squared norm may be too small, because the squares of tiny entries are 0 in float64."""
SMALLEST_LOSS = 1e-8
"""Smallest loss; smaller ones are raised to it, for schemes that divide by losses or take logarithms."""


class ProblemError(ValueError):
    """The inner products cannot be those of gradients; the message names the entry."""


def check_vector(values: ArrayLike, name: str, length: int | None = None) -> Vector:
    """Return a read-only copy, shape (m,), after checking that every entry is finite.

    Raises:
        ProblemError: The shape is wrong or an entry is not finite; the message names the entry.
    """
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1 or (length is not None and len(array) != length):
        wanted = "(m,)" if length is None else f"({length},)"
        raise ProblemError(f"{name} must have shape {wanted}, got {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ProblemError(f"{name}[{bad[0]}] is {array[bad[0]]}: every entry must be finite")
    array.setflags(write=False)
    return array


def check_gram(values: ArrayLike) -> Matrix:
    """Return a read-only symmetric copy, shape (m, m), after checking that gradients can have these inner products.

    Raises:
        ProblemError: They cannot; the message names the entry.
    """
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
    """Raise unless a gradient of this squared norm can have these inner products with gradients of those squared norms.

    Raises:
        ProblemError: It cannot; the message names the entry.
    """
    if len(dots) != len(squares):
        raise ProblemError(f"guide.dots has {len(dots)} entries for {len(squares)} objectives")
    if not np.isnan(square):
        _check_products("guide.dots[{}]", dots, np.sqrt(squares + _UNDERFLOW) * np.sqrt(square + _UNDERFLOW))


def check_offsets(offsets: Sequence[float], size: int) -> None:
    """Raise unless there is one finite offset for each loss, and none is negative.

    Raises:
        ProblemError: There is another number of offsets, or one is negative or not finite.
    """
    if check_vector(offsets, "offsets", size).min() < 0:
        raise ProblemError(f"offsets must be 0 or more, got {tuple(offsets)}")


def add_offsets(losses: Vector, offsets: Sequence[float]) -> Vector:
    """Return the offset plus the loss, or the offset alone for a negative loss; with no offset at least 1e-8.

    The offset of an adversarial loss is that of an adversary that knows nothing, so that the value is bounded away from
    0 and has the gradient of the loss. A negative estimate of a divergence, which is never negative itself, says no
    more than that nothing was found.

    Args:
        losses: L, shape (m,).
        offsets: Offset of each loss, 0 or more; empty: 0.

    Examples:
        >>> add_offsets(np.array([0.7, 0.3, -2.0]), (0.0, 0.5, 0.5))
        array([0.7, 0.8, 0.5])
    """
    found: Vector = np.maximum(losses, 0.0) + (np.array(offsets) if offsets else 0.0)
    return np.maximum(found, SMALLEST_LOSS)


def _check_products(name: str, products: Matrix | Vector, bounds: Matrix | Vector) -> None:
    """Check Cauchy-Schwarz, |<a, b>| <= |a| |b|, up to rounding and underflow."""
    for index in np.argwhere(np.abs(products) > (1 + _ROUNDING) * bounds + np.finfo(float).tiny):
        raise ProblemError(
            f"{name.format(*index)} is {products[tuple(index)]}, larger than the product of the norms, "
            f"{bounds[tuple(index)]}: no gradients have these inner products"
        )


__all__ = [
    "SMALLEST_LOSS",
    "AheadScheme",
    "Guide",
    "GuideMissingError",
    "Matrix",
    "Move",
    "Problem",
    "ProblemError",
    "Scheme",
    "StatefulScheme",
    "Vector",
    "Weights",
    "add_offsets",
    "check_offsets",
    "reads_guide",
    "reads_values",
]


class GuideMissingError(ValueError):
    """A guided scheme was called without a guide."""


class Move(StrEnum):
    """Rule that chose the weights; every report counts the moves.

    Examples:
        >>> Move.DESCENT.value
        'descent'
    """

    FIXED = "fixed"  # given before the step
    HELD = "held"  # chosen at an earlier step and kept
    LEARNED = "learned"  # from the scheme's state or the loss values
    GUIDED = "guided"  # the guide determined or constrained the weights
    BALANCE = "balance"  # towards a wanted proportion of the losses
    DESCENT = "descent"  # no objective rises
    COMBINED = "combined"  # the scheme's own compromise, without such a guarantee
    FALLBACK = "fallback"  # the programme has no solution; the scheme's documented substitute
    SAFETY_NET = "safety-net"  # numerical failure; the exact min-norm weights
    SKIPPED = "skipped"  # a non-finite step, left to the gradient scaler


@dataclass(frozen=True, eq=False)
class Guide:
    """Inner products of the objectives' gradients with the guide's gradient.

    Args:
        dots: ⟨g_i, g_v⟩, shape (m,).
        square: ⟨g_v, g_v⟩; NaN if it was not measured.
        loss: L_val, non-negative where the theory holds; infinite if it was not measured.

    Raises:
        ProblemError: An entry is not finite, or the squared norm is negative.

    Examples:
        >>> Guide(dots=[0.5, -0.1], square=1.0, loss=0.3).loss
        0.3
    """

    dots: Vector
    square: float = float("nan")
    loss: float = float("inf")

    def __post_init__(self) -> None:
        object.__setattr__(self, "dots", check_vector(self.dots, "guide.dots"))
        if self.square < 0 or np.isinf(self.square):
            raise ProblemError(f"guide.square is {self.square}: it is a squared norm")
        if np.isnan(self.loss):
            raise ProblemError("guide.loss is NaN")


def find_role(name: str) -> str:
    """Return the role of an objective: its name without the number of its source.

    Examples:
        >>> find_role("alignment-2"), find_role("target")
        ('alignment', 'target')
    """
    role, _, number = name.rpartition("-")
    return role if role and number.isdecimal() else name


@dataclass(frozen=True, eq=False)
class Problem:
    """One step as a scheme sees it: the inner products of m gradients, the losses, and the guide.

    Args:
        gram: A_ij = ⟨g_i, g_j⟩, shape (m, m), in the metric of the step.
        losses: L_i, shape (m,); values below 1e-8 are raised to it.
        guide: Inner products with the held-out gradient, if there is a guide.
        roles: Role of each objective ("source", "alignment", "target", ...); empty, or one per row.
        offsets: Offset of each loss where logarithms or ratios of values are taken, 0 or more; empty, or one per row.

    Raises:
        ProblemError: No gradients have these inner products; the message names the entry.

    Examples:
        >>> problem = Problem(gram=[[1.0, -0.5], [-0.5, 2.0]], losses=[0.7, 0.2])
        >>> problem.size
        2
    """

    gram: Matrix
    losses: Vector
    guide: Guide | None = None
    roles: tuple[str, ...] = ()
    offsets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        gram = check_gram(self.gram)
        losses = np.maximum(check_vector(self.losses, "losses", len(gram)), SMALLEST_LOSS)
        losses.setflags(write=False)
        object.__setattr__(self, "gram", gram)
        object.__setattr__(self, "losses", losses)
        if self.roles and len(self.roles) != len(gram):
            raise ProblemError(f"roles has {len(self.roles)} entries for {len(gram)} objectives")
        if self.offsets:
            check_offsets(self.offsets, len(gram))
        if self.guide is not None:
            check_dots(self.guide.dots, self.guide.square, np.diagonal(gram))

    @property
    def size(self) -> int:
        """Number m of objectives."""
        return len(self.losses)

    @property
    def values(self) -> Vector:
        """Losses with their offsets, for logarithms and ratios, shape (m,)."""
        return add_offsets(self.losses, self.offsets)

    def need_guide(self, scheme: str) -> Guide:
        """Return the guide.

        Raises:
            GuideMissingError: There is none; the message says which scheme needs one and how to pass it.
        """
        if self.guide is None:
            raise GuideMissingError(
                f"the scheme {scheme!r} needs a guide: pass guide=, the loss on held-out target data "
                "(or choose a scheme without a guide, such as 'linear' or 'mgda')"
            )
        return self.guide


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights that a scheme chose: the step goes along m Σ alpha_i g_i.

    Args:
        alpha: Weights, shape (m,); 1/m everywhere is the plain sum of the losses.
        move: Rule that chose them.
        units: Factor of each loss wherever it is used without these weights, as in the heads, shape (m,); None: 1.
        lasting: Weights for steps that hold them without asking again, shape (m,); None: alpha. Weights that fit the
            gradients of a single batch must not be held: a loss that is nearly 0 in it may have a weight of thousands.

    Raises:
        ProblemError: A weight is not finite.

    Examples:
        >>> Weights([0.5, 0.5], Move.FIXED).alpha
        array([0.5, 0.5])
    """

    alpha: Vector
    move: Move = field(default=Move.COMBINED)
    units: Vector | None = None
    lasting: Vector | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_vector(self.alpha, "alpha"))
        for name in ("units", "lasting"):
            if (values := getattr(self, name)) is not None:
                object.__setattr__(self, name, check_vector(values, name, len(self.alpha)))


class Scheme(Protocol):
    """Callable from a problem to weights.

    A class may define `guided = True` (it reads the guide, and raises GuideMissingError without one) or `guided =
    False` (the guide's gradient need not be computed); without the attribute, a given guide is computed. One that reads
    the values of the losses, not only their gradients, defines `valued = True`.

    Examples:
        >>> class First:
        ...     guided = False
        ...
        ...     def __call__(self, problem):
        ...         return Weights(np.eye(problem.size)[0], Move.FIXED)
        >>> First()(Problem([[1.0, 0.0], [0.0, 1.0]], [0.7, 0.2])).alpha
        array([1., 0.])
    """

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step."""
        ...


@runtime_checkable
class AheadScheme(Protocol):
    """Scheme that can know its weights before any gradient, so that one ordinary backward pass is enough."""

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step."""
        ...

    def ahead(self, losses: Vector, /) -> Weights | None:
        """Return the weights of this step from the losses alone, or None if the inner products are needed."""
        ...


@runtime_checkable
class StatefulScheme(Protocol):
    """Scheme with a state that must survive a restart, as plain numbers and lists."""

    def state_dict(self) -> dict[str, object]:
        """Return the state as plain Python numbers, lists and dictionaries."""
        ...

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore the state that `state_dict` returned."""
        ...


def reads_guide(scheme: object) -> bool:
    """Whether the guide must be computed for this scheme, or for a strategy in its place."""
    return bool(getattr(scheme, "guided", True))


def reads_values(scheme: object) -> bool:
    """Whether this scheme reads the values of the losses, which must then be positive."""
    return bool(getattr(scheme, "valued", False))
