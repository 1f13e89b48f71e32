"""MGDA: the min-norm point of the gradients' convex hull (Désidéri, 2012; Sener and Koltun, 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paretoda.core.min_norm import min_norm
from paretoda.core.normalisation import Normalise, rescale, scale_factors, undo_scaling
from paretoda.core.problem import Move, Problem, Weights


@dataclass(frozen=True)
class MGDA:
    """min |Σ w_i g_i|² over the simplex: every objective falls by at least |d|², to first order.

    An objective whose gradient is exactly zero has no say: it is inactive, as propagation is before it starts, and with
    it the shortest point would always be 0.

    Args:
        normalise: Divide each gradient first by its norm ("l2"), its loss ("loss") or both ("loss+"). The weights are
            returned for the original gradients along the same direction, so that it stays a common descent direction.

    Examples:
        >>> MGDA()(Problem([[1.0, 0.0], [0.0, 3.0]], [0.7, 0.2])).alpha.round(4)
        array([0.75, 0.25])
    """

    normalise: Normalise = "none"
    guided: ClassVar[bool] = False

    @property
    def valued(self) -> bool:
        """Whether gradients are divided by loss values."""
        return self.normalise in ("loss", "loss+")

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of the min-norm point; equal ones where all gradients are zero."""
        active = np.diagonal(problem.gram) > 0
        if not active.any():
            return Weights(np.full(problem.size, 1 / problem.size), Move.DESCENT)
        by = scale_factors(problem, self.normalise)
        gram, alpha = rescale(problem, by).gram[np.ix_(active, active)], np.zeros(problem.size)
        alpha[active] = undo_scaling(min_norm(gram), by[active])
        return Weights(alpha, Move.DESCENT)
