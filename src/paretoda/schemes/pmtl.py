"""Pareto MTL: descend inside one sub-region of the loss space, defined by preference vectors (Lin et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from paretoda.core.min_norm import min_norm
from paretoda.core.problem import Matrix, Move, Problem, Vector, Weights
from paretoda.core.simplex import lattice


def preference_grid(size: int, divisions: int) -> Matrix:
    """Unit vectors through the points of the simplex lattice, shape (n, size); for two losses, evenly spread angles."""
    if size == 2:
        angles = np.linspace(0.0, np.pi / 2, divisions + 1)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return _unit(lattice(size, divisions))


def _unit(vectors: Matrix) -> Matrix:
    result: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return result


def violated_edges(losses: Vector, preferences: Matrix, index: int) -> Matrix:
    """Rows u_j - u_k of the constraints (u_j - u_k)·L <= 0 of sub-region k that the losses violate."""
    edges = preferences - preferences[index]
    violated: Matrix = edges[edges @ losses > 1e-12 * np.linalg.norm(losses)]
    return violated


@dataclass(frozen=True)
class PMTL:
    """First reach the sub-region of u_k (where u_k is the preference vector nearest to the losses), then descend in it.

    Phase one lasts at most `reach` steps and ends at the first step inside: the min-norm combination β of the gradients
    of the violated constraints, w = Σ β_j (u_j - u_k). Phase two: the min-norm point of the losses' and the violated
    constraints' gradients together, w = λ + Σ β_j (u_j - u_k). Weights can be negative; Σ|w| = 1.

    Args:
        index: k, the row of the preference vectors to follow; None: the one nearest to equal losses.
        divisions: Number of divisions of the grid of preference vectors.
        preferences: Own preference vectors, one tuple each, instead of the grid.
        reach: Largest number of steps in phase one.

    Raises:
        ValueError: An argument is out of its range.

    Examples:
        >>> weights = PMTL()(Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0]))  # equal losses: inside
        >>> weights.alpha.round(4), weights.move.value
        (array([0.5, 0.5]), 'descent')
    """

    index: int | None = None
    divisions: int = 4
    preferences: tuple[tuple[float, ...], ...] = ()
    reach: int = 200
    guided: ClassVar[bool] = False
    valued: ClassVar[bool] = True
    _memory: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.divisions < 1 or self.reach < 0:
            raise ValueError("pmtl needs divisions >= 1 and reach >= 0")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of the phase that the losses are in."""
        vectors = self._vectors(problem.size)
        index = self._index(vectors)
        edges = violated_edges(problem.losses, vectors, index)
        step = self._memory.get("steps", 0)
        reaching = len(edges) > 0 and step < self.reach
        self._memory["steps"] = step + 1 if reaching else self.reach
        if not len(edges):
            return Weights(min_norm(problem.gram), Move.DESCENT)
        rows = edges if reaching else np.vstack([np.eye(problem.size), edges])
        weights = min_norm(rows @ problem.gram @ rows.T) @ rows
        total = np.abs(weights).sum()
        return Weights(weights / total if total > 0 else weights, Move.BALANCE)

    def _vectors(self, size: int) -> Matrix:
        if not self.preferences:
            return preference_grid(size, self.divisions)
        vectors = np.array(self.preferences, dtype=np.float64)
        if vectors.ndim != 2 or vectors.shape[1] != size:
            raise ValueError(f"pmtl's preferences must have {size} numbers each, one for each loss")
        return _unit(vectors)

    def _index(self, vectors: Matrix) -> int:
        if self.index is None:
            return int(np.argmax(vectors.sum(axis=1)))
        if not 0 <= self.index < len(vectors):
            raise ValueError(f"pmtl's index is {self.index}, but there are {len(vectors)} preference vectors")
        return self.index

    def state_dict(self) -> dict[str, object]:
        """Return the number of steps that phase one has used."""
        return dict(self._memory)

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore the state that `state_dict` returned."""
        self._memory.clear()
        self._memory.update({key: int(str(value)) for key, value in state.items()})
