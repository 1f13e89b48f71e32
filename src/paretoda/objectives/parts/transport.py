"""Couplings of two sets of samples: entropic optimal transport, and Gromov-Wasserstein, which compares pairs.

Everything is done with logarithms of the couplings: with little entropy their entries underflow.
"""

from __future__ import annotations

import torch
from torch import Tensor


def sinkhorn(cost: Tensor, rows: Tensor, columns: Tensor, entropy: float, iterations: int = 50) -> Tensor:
    """The coupling with least <cost, T> - entropy H(T), by Sinkhorn's alternate scaling (Cuturi, 2013).

    The columns' sums are exact, the rows' as good as the iterations make them.

    Args:
        cost: shape (n, m).
        rows: sums of the rows, positive, shape (n,).
        columns: sums of the columns, positive, with the same total, shape (m,).
        entropy: its weight, positive.
        iterations: number of scalings of rows and columns.

    Returns:
        T, not negative, shape (n, m).
    """
    scores = -cost / entropy
    log_rows, log_columns = rows.log(), columns.log()
    right = torch.zeros_like(log_columns)
    left = torch.zeros_like(log_rows)
    for _ in range(iterations):
        left = log_rows - (scores + right).logsumexp(1)
        right = log_columns - (scores + left.unsqueeze(1)).logsumexp(0)
    return (scores + left.unsqueeze(1) + right).exp()


def pair_costs(one: Tensor, other: Tensor, coupling: Tensor) -> Tensor:
    """Σ_kl (one_ik - other_jl)² T_kl for every i and j: what it costs to couple i with j, given the rest.

    Args:
        one: similarities within the first set, symmetric, shape (n, n).
        other: within the second, symmetric, shape (m, m).
        coupling: T, shape (n, m).

    Returns:
        Shape (n, m), not negative up to rounding.
    """
    squares = (one.square() @ coupling.sum(1)).unsqueeze(1) + other.square() @ coupling.sum(0)
    return squares - 2 * one @ coupling @ other


def gromov_wasserstein(one: Tensor, other: Tensor, coupling: Tensor) -> Tensor:
    """Σ (one_ik - other_jl)² T_ij T_kl, the edges' misfit; 0 where the coupling matches equal graphs."""
    return (pair_costs(one, other, coupling) * coupling).sum()


@torch.no_grad()
def entropic_gromov_wasserstein(  # noqa: PLR0913 - two graphs with their masses, and how to solve
    one: Tensor,
    other: Tensor,
    rows: Tensor,
    columns: Tensor,
    *,
    extra: Tensor | None = None,
    entropy: float = 0.05,
    rounds: int = 10,
    scalings: int = 50,
) -> Tensor:
    """A coupling that takes similar pairs to similar pairs: transport whose costs it makes itself (Peyré et al., 2016).

    Costs are divided by their range in every round, so that the entropy means the same for all graphs.

    Args:
        one: similarities within the first set, symmetric, shape (n, n).
        other: within the second, symmetric, shape (m, m).
        rows: masses of the first set, positive, sum 1, shape (n,).
        columns: masses of the second, likewise, shape (m,).
        extra: added to the scaled costs, shape (n, m); None for nothing.
        entropy: its weight beside costs between 0 and 1.
        rounds: number of times that costs are made.
        scalings: of rows and columns in every round.

    Returns:
        Shape (n, m).
    """
    coupling = rows.unsqueeze(1) * columns
    for _ in range(rounds):
        costs = pair_costs(one, other, coupling)
        least, most = costs.aminmax()
        scaled = (costs - least) / (most - least).clamp(min=torch.finfo(costs.dtype).tiny)
        coupling = sinkhorn(scaled if extra is None else scaled + extra, rows, columns, entropy, scalings)
    return coupling
