"""Rows: one gradient for each loss, as few passes as there can be, checked, combined, and let go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from paretoda.core.problem import Matrix, Vector
from paretoda.gradients.gram import Row
from paretoda.gradients.micro_batches import MicroBatchPasses
from paretoda.gradients.passes import combine, vjp
from paretoda.gradients.report import NonFiniteError
from paretoda.gradients.tensors import Tensors, all_finite


def rows_of(tensors: Tensors) -> tuple[list[Row], list[Row], list[Row]]:
    """The voting gradients of all losses and, last, of the guide; the heads' gradients of all losses; cotangents."""
    scaled = [tensors.scale * loss for loss in tensors.measured()]
    size, votes = len(tensors.names), len(tensors.voting)
    if tensors.passes is not None:
        pairs = [tensors.passes.cotangents(loss, heads=index < size) for index, loss in enumerate(scaled)]
        cotangents = [cotangent for cotangent, _ in pairs]
        rows = tensors.passes.through_body(cotangents, tensors.voting, keep=not tensors.exact)
        return rows, [head for _, head in pairs[:size]], cotangents
    # The guide goes first: the last product through the losses' common graph is then free to release it.
    guides = [vjp([loss], tensors.voting, None, keep=True) for loss in scaled[size:]]
    inputs = [*tensors.voting, *tensors.heads]
    last = size - 1 if tensors.exact else size
    both = [vjp([loss], inputs, None, keep=index != last) for index, loss in enumerate(scaled[:size])]
    return [*(row[:votes] for row in both), *guides], [row[votes:] for row in both], []


def sum_gradient(tensors: Tensors, weights: Sequence[float], *, heads: bool) -> Row:
    """The gradient of Σ w_i L_i for the shared parameters and, where wanted, for the heads: one backward pass."""
    total = tensors.weighted_sum(weights)
    if isinstance(tensors.passes, MicroBatchPasses):  # the losses' graph ends at the features
        cotangents, above = tensors.passes.cotangents(total, heads=heads)
        return [*tensors.passes.through_body([cotangents], tensors.shared, keep=False)[0], *above]
    return vjp([total], [*tensors.shared, *(tensors.heads if heads else ())], None, keep=False)


def combine_and_free(rows: Sequence[Row], index: int, factors: Sequence[float]) -> Tensor | None:
    """Σ w_i g_i for one tensor; its rows are let go, so that no more than one tensor is held twice."""
    total = combine([row[index] for row in rows], factors)
    for row in rows:
        row[index] = None
    return total


def check_rows(tensors: Tensors, table: Matrix, values: Vector, heads: Sequence[Row]) -> None:
    """Raise where a loss or a gradient is not finite, with the objective's name."""
    tensors.check_losses(values)
    for index, name in enumerate([*tensors.names, "the guide"][: len(table)]):
        if not np.isfinite(table[index, index]) or (index < len(heads) and not all_finite(heads[index])):
            raise NonFiniteError(f"the gradient of {name!r} is not finite; no gradient was written")
