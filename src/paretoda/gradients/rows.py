"""Rows: one gradient for each loss, computed with as few passes as possible, checked, combined and freed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from paretoda.core.normalisation import cosines
from paretoda.core.problem import Guide, Matrix, Problem, Vector, Weights, find_role
from paretoda.gradients.fsdp import is_sharded
from paretoda.gradients.gram import Row
from paretoda.gradients.micro_batches import MicroBatchPasses
from paretoda.gradients.reduce import sum_over_processes
from paretoda.gradients.report import NonFiniteError, Report
from paretoda.gradients.tensors import Tensors, all_finite
from paretoda.gradients.vjp import combine, vjp


def compute_rows(tensors: Tensors) -> tuple[list[Row], list[Row], list[Row]]:
    """Return the voting gradients of losses and guide (last), the heads' gradients of the losses, and cotangents."""
    scaled = [tensors.scale * loss for loss in tensors.measured()]
    size, votes = len(tensors.names), len(tensors.voting)
    if tensors.passes is not None:
        pairs = [tensors.passes.cotangents(loss, heads=index < size) for index, loss in enumerate(scaled)]
        cotangents = [cotangent for cotangent, _ in pairs]
        rows = tensors.passes.through_body(cotangents, tensors.voting, keep=not tensors.exact)
        return rows, [head for _, head in pairs[:size]], cotangents
    # The guide goes first, so that the last product through the losses' common graph can release it.
    guides = [vjp([loss], tensors.voting, None, keep=True) for loss in scaled[size:]]
    inputs = [*tensors.voting, *tensors.heads]
    last = size - 1 if tensors.exact else size
    both = [vjp([loss], inputs, None, keep=index != last) for index, loss in enumerate(scaled[:size])]
    return [*(row[:votes] for row in both), *guides], [row[votes:] for row in both], []


def sum_gradient(tensors: Tensors, weights: Sequence[float], *, heads: bool) -> Row:
    """Return the gradient of Σ w_i L_i for shared parameters and, with `heads`, for the heads: one backward pass."""
    total, passes, size = tensors.weighted_sum(weights), tensors.passes, len(tensors.shared)
    # The graph of micro-batches ends at the features, and FSDP's hooks run in a separate pass from there.
    if passes is not None and (isinstance(passes, MicroBatchPasses) or is_sharded(tensors.shared)):
        cotangents, above = passes.cotangents(total, heads=heads)
        found = [*passes.weighted([cotangents], [1.0], tensors.shared), *above]
    else:
        found = vjp([total], [*tensors.shared, *(tensors.heads if heads else ())], None, keep=False)
    return [*sum_over_processes(found[:size], tensors.processes), *found[size:]]


def combine_and_free(rows: Sequence[Row], index: int, factors: Sequence[float]) -> Tensor | None:
    """Return Σ w_i g_i for one tensor and free its rows, so that no more than one tensor is held twice."""
    total = combine([row[index] for row in rows], factors)
    for row in rows:
        row[index] = None
    return total


def check_rows(tensors: Tensors, table: Matrix, values: Vector, heads: Sequence[Row]) -> None:
    """Raise if a loss or a gradient is not finite, with the name of the objective.

    Raises:
        NonFiniteError: A loss or a gradient is NaN or infinite.
    """
    tensors.check_losses(values)
    for index, name in enumerate([*tensors.names, "the guide"][: len(table)]):
        if not np.isfinite(table[index, index]) or (index < len(heads) and not all_finite(heads[index])):
            raise NonFiniteError(f"the gradient of {name!r} is not finite; no gradient was written")


def make_problem(tensors: Tensors, table: Matrix, values: Vector) -> Problem:
    """Return the problem that the scheme sees."""
    size = len(tensors.names)
    guide = None
    if tensors.guide is not None:
        guide = Guide(table[:size, size], float(table[size, size]), float(values[size]))
    roles = tuple(map(find_role, tensors.names))
    return Problem(table[:size, :size], values[:size], guide, roles, tensors.offsets)


def make_report(tensors: Tensors, table: Matrix, values: Vector, weights: Weights) -> Report:
    """Return the report of the step."""
    size = len(tensors.names)
    angles = cosines(table)
    guided = tensors.guide is not None
    return Report(
        names=tensors.names,
        losses=values[:size],
        alpha=weights.alpha,
        move=weights.move,
        cosines=angles[:size, :size],
        guide_loss=float(values[size]) if guided else None,
        guide_cosines=angles[:size, size] if guided else None,
        units=weights.units,
    )
