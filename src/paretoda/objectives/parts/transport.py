"""Couplings of two sets of samples: entropic optimal transport, and Gromov-Wasserstein, which compares pairs.

Couplings are computed with logarithms, because with little entropy their entries underflow.
"""

from __future__ import annotations

import torch
from torch import Tensor


def sinkhorn(cost: Tensor, rows: Tensor, columns: Tensor, entropy: float, iterations: int = 50) -> Tensor:
    """The coupling with least <cost, T> - entropy H(T), by Sinkhorn's alternate scaling (Cuturi, 2013).

    The sums of the columns are exact; those of the rows are as accurate as the number of iterations allows.

    Args:
        cost: Costs, shape (n, m).
        rows: Sums of the rows, positive, shape (n,).
        columns: Sums of the columns, positive, with the same total, shape (m,).
        entropy: Weight of the entropy, positive.
        iterations: Number of scalings of rows and columns.

    Returns:
        T, non-negative, shape (n, m).

    Examples:
        >>> half = torch.tensor([0.5, 0.5])
        >>> sinkhorn(torch.zeros(2, 2), half, half, entropy=1.0)
        tensor([[0.2500, 0.2500],
                [0.2500, 0.2500]])
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
    """Σ_kl (one_ik - other_jl)² T_kl for every i and j: the cost of coupling i with j, given the rest.

    Args:
        one: Similarities within the first set, symmetric, shape (n, n).
        other: Similarities within the second set, symmetric, shape (m, m).
        coupling: T, shape (n, m).

    Returns:
        Shape (n, m), non-negative up to rounding.
    """
    squares = (one.square() @ coupling.sum(1)).unsqueeze(1) + other.square() @ coupling.sum(0)
    return squares - 2 * one @ coupling @ other


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
    """Coupling that assigns similar pairs to similar pairs, whose costs depend on itself (Peyré et al., 2016).

    Costs are divided by their range in every round, so that the entropy means the same for all graphs.

    Args:
        one: Similarities within the first set, symmetric, shape (n, n).
        other: Similarities within the second set, symmetric, shape (m, m).
        rows: Masses of the first set, positive, sum 1, shape (n,).
        columns: Masses of the second set, positive, sum 1, shape (m,).
        extra: Costs that are added to the scaled ones, shape (n, m); None for none.
        entropy: Weight of the entropy, relative to costs between 0 and 1.
        rounds: Number of times that the costs are computed.
        scalings: Number of scalings of rows and columns in every round.

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
