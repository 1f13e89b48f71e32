"""Inner products of gradients that consist of many tensors, in float64, without a copy of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

Row: TypeAlias = list[Tensor | None]
"""One gradient: an entry for each parameter; None, which counts as zero, if the loss does not depend on it."""

_CHUNK = 1 << 15
"""Number of entries of each row that are converted to float64 at a time on a CPU, so that they stay in its cache."""


def gram(rows: Sequence[Row], multipliers: Sequence[float]) -> Tensor:
    """A_ij = Σ_t λ_t <g_i,t , g_j,t> over the tensors t.

    Args:
        rows: n gradients of the same parameters.
        multipliers: Factors λ_t, one for each parameter.

    Returns:
        Shape (n, n), float64, on the gradients' device.

    Examples:
        >>> gram([[torch.ones(2)], [torch.tensor([1.0, -1.0])]], [1.0])
        tensor([[2., 0.],
                [0., 2.]], dtype=torch.float64)
    """
    present = next((tensor for row in rows for tensor in row if tensor is not None), None)
    result = torch.zeros(len(rows), len(rows), dtype=torch.float64, device=None if present is None else present.device)
    for index, multiplier in enumerate(multipliers):
        pieces = [(i, row[index]) for i, row in enumerate(rows)]
        members = [(i, tensor.detach().reshape(-1)) for i, tensor in pieces if tensor is not None]
        if members and multiplier:
            where = torch.tensor([i for i, _ in members], device=result.device)
            result[where[:, None], where] += multiplier * _products([tensor for _, tensor in members])
    return result


def _products(vectors: list[Tensor]) -> Tensor:
    """Inner products of flat vectors, shape (n, n), float64."""
    if vectors[0].device.type != "cpu":
        block = torch.stack([vector.double() for vector in vectors])
        return block @ block.T
    total = torch.zeros(len(vectors), len(vectors), dtype=torch.float64)
    block = torch.empty(len(vectors), min(_CHUNK, len(vectors[0])), dtype=torch.float64)
    for start in range(0, len(vectors[0]), _CHUNK):
        wide = block[:, : len(vectors[0]) - start]
        for row, vector in zip(wide, vectors, strict=True):
            row.copy_(vector[start : start + _CHUNK])
        total.addmm_(wide, wide.T)
    return total
