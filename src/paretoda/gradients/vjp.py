"""Vector-Jacobian products: the gradient of every objective with as few passes through the network as possible."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from paretoda.gradients.fsdp import backward_by_hooks, is_sharded
from paretoda.gradients.gram import Row


def vjp(outputs: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Sequence[Tensor] | None, *, keep: bool) -> Row:
    """Gradients of the outputs (weighted by the cotangents) with respect to the inputs; None where there is no path.

    Args:
        outputs: Tensors to differentiate; those without a graph are left out.
        inputs: Tensors with respect to which they are differentiated.
        cotangents: One cotangent for each output; None for scalars.
        keep: Whether the graph is needed again.
    """
    pairs = list(zip(outputs, cotangents if cotangents is not None else [None] * len(outputs), strict=True))
    alive = [(output, cotangent) for output, cotangent in pairs if output.requires_grad]
    if not alive or not inputs:
        return [None] * len(inputs)
    # The gradient of Σ <output, cotangent> has the same bits. Given cotangents, torch would import its symbolic shapes.
    scalars = [output if cotangent is None else (output * cotangent).sum() for output, cotangent in alive]
    try:
        found = torch.autograd.grad(scalars, list(inputs), retain_graph=keep, allow_unused=True)
    except RuntimeError as error:
        if "donated buffer" in str(error):
            raise RuntimeError(
                "a compiled module gives away buffers that a second backward pass needs: set "
                "torch._functorch.config.donated_buffer = False before its first call"
            ) from error
        raise
    return list(found)


class FeaturePasses:
    """Gradients in two stages: each loss down to the features, then from the features through the body.

    Args:
        features: Outputs of the body's forward passes. Views of one tensor count as one pass.
        heads: Parameters above the features that are differentiated along with them.
    """

    def __init__(self, features: Sequence[Tensor], heads: Sequence[Tensor]) -> None:
        self.features = list(features)
        self.heads = list(heads)
        self.graphs = [id(feature._base if feature._base is not None else feature) for feature in features]

    def cotangents(self, loss: Tensor, *, heads: bool) -> tuple[Row, Row]:
        """Return the gradient of a loss for every feature tensor and, in the same pass, for the heads."""
        wanted = [feature for feature in self.features if feature.requires_grad]
        found = vjp([loss], [*wanted, *(self.heads if heads else ())], None, keep=True)
        arrived = iter(found[: len(wanted)])
        return [next(arrived) if feature.requires_grad else None for feature in self.features], found[len(wanted) :]

    def through_body(self, cotangents: Sequence[Row], inputs: Sequence[Tensor], *, keep: bool) -> list[Row]:
        """Return one row for each objective, by one product for each; the last product through a graph frees it.

        Objectives on the fewest features go first, so that the last one frees the most.
        """
        order = sorted(range(len(cotangents)), key=lambda i: sum(c is not None for c in cotangents[i]))
        rows: list[Row] = [[None] * len(inputs)] * len(cotangents)
        for place, index in enumerate(order):
            mine = self._graphs_of(cotangents[index])
            later = [self._graphs_of(cotangents[other]) for other in order[place + 1 :]]
            needed = keep or any(mine & graphs for graphs in later)
            rows[index] = self._product(cotangents[index], inputs, keep=needed)
        return rows

    def _graphs_of(self, cotangents: Row) -> set[int]:
        return {graph for graph, cotangent in zip(self.graphs, cotangents, strict=True) if cotangent is not None}

    def _product(self, cotangents: Row, inputs: Sequence[Tensor], *, keep: bool) -> Row:
        pairs = [(f, c) for f, c in zip(self.features, cotangents, strict=True) if c is not None]
        return vjp([f for f, _ in pairs], inputs, [c for _, c in pairs], keep=keep)

    def weighted(self, cotangents: Sequence[Row], weights: Sequence[float], inputs: Sequence[Tensor]) -> Row:
        """Return the gradient of Σ w_i L_i by one pass through the body, from stored cotangents."""
        sums = [combine([row[index] for row in cotangents], weights) for index in range(len(self.features))]
        if not is_sharded(inputs):
            return self._product(sums, inputs, keep=False)
        pairs = [(f, c) for f, c in zip(self.features, sums, strict=True) if c is not None and f.requires_grad]
        return backward_by_hooks([f for f, _ in pairs], [c for _, c in pairs], inputs)


def combine(tensors: Sequence[Tensor | None], weights: Sequence[float]) -> Tensor | None:
    """Σ w_i t_i of the tensors that are present, as a new tensor; None if there are none."""
    present = [(tensor, weight) for tensor, weight in zip(tensors, weights, strict=True) if tensor is not None]
    if not present:
        return None
    first, weight = present[0]
    total = first * weight
    for tensor, weight in present[1:]:
        total.add_(tensor, alpha=weight)
    return total
