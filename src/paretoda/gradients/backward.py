"""`paretoda.backward`: what `loss.backward()` is for one loss, for several that pull in different directions.

Its arguments are many because each names one group of tensors of the caller's own loop; all but three have defaults.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from paretoda.core.problem import AheadScheme, Move, Scheme, Weights, reads_guide
from paretoda.core.simplex import equal
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.gradients.fsdp import is_gathered
from paretoda.gradients.gram import Row, gram
from paretoda.gradients.micro_batches import MicroBatches, make_passes
from paretoda.gradients.parameters import (
    Metric,
    Parameters,
    Voting,
    exclude,
    rate_multipliers,
    trainable_parameters,
    voting_parameters,
)
from paretoda.gradients.reduce import scatter_rows, sum_over_processes
from paretoda.gradients.report import NonFiniteError, Report
from paretoda.gradients.rows import check_rows, combine_and_free, compute_rows, make_problem, make_report, sum_gradient
from paretoda.gradients.tensors import (
    Gradients,
    Losses,
    Private,
    Tensors,
    all_finite,
    check_sharded,
    find_positions,
    name_losses,
    poison_gradients,
    private_gradients,
    write_gradients,
)
from paretoda.gradients.vjp import combine, vjp


def backward(  # noqa: PLR0913 - see the module's first lines
    losses: Losses,
    *,
    shared: Parameters,
    scheme: Scheme,
    guide: Tensor | None = None,
    features: Tensor | MicroBatches | Sequence[Tensor | MicroBatches] | None = None,
    heads: Parameters = (),
    head_losses: Sequence[str | int] | None = None,
    private: Private = (),
    voting: Voting = "all",
    metric: Metric = None,
    scaler: torch.amp.GradScaler | None = None,
    processes: Processes = SINGLE_PROCESS,
) -> Report:
    """Fill `.grad` with the direction that the scheme chooses, and say what it chose.

    Afterwards the shared parameters hold m Σ alpha_i ∇L_i, the heads the gradient of their own losses, and each private
    network that of its loss and of nothing else. As with `loss.backward()`, what `.grad` held before is added to, and
    clipping, accumulation and the optimiser come after. Nothing is written unless everything is finite.

    Args:
        losses: The objectives, scalars; as a mapping they have names ("source", "alignment", "target").
        shared: The module (or its parameters) whose gradients conflict: the encoder.
        scheme: Chooses the weights, for example `paretoda.schemes.ParetoDA()`.
        guide: The loss on held-out target data, for schemes that follow one.
        features: What the encoder returned, one tensor for each of its forward passes (with the guide's); then the
            heads are differentiated once for each loss and the body once for each loss and pass. Every path from a loss
            to a shared parameter must go through them. Without it the result is the same and costs more. Batches whose
            graph does not fit in memory are given as `MicroBatches`.
        heads: Parameters behind the encoder that several losses share: the classifier.
        head_losses: Which losses (by name or position) reach the heads, unweighted. None: the same weighted sum as for
            the shared parameters where the weights do not come from gradients (`linear`, `dwa`, ...), all losses
            otherwise.
        private: Pairs of a loss and the network that alone follows it, for example a discriminator's.
        voting: Whose inner products the scheme sees: "all" shared parameters (exact), the "last" layer's (cheap: one
            ordinary backward pass afterwards), or any of them.
        metric: The optimiser, so that inner products are weighted by learning rates; or a mapping parameter -> rate.
        scaler: For float16: scales every loss, and is handed non-finite steps, so that it skips them and backs off.
        processes: Several that have encoded their own samples, joined the features and computed the same losses: the
            shared parameters' gradients are summed over them, all others are already the same everywhere.

    Returns:
        The weights, the rule that chose them, the losses and the cosines between the gradients.

    Raises:
        NonFiniteError: a loss or gradient is NaN or infinite; it names the objective, and no `.grad` was touched.
    """
    if is_gathered(shared):
        raise ValueError("FSDP has not sharded the encoder again: fully_shard(..., reshard_after_forward=True)")
    names, values = name_losses(losses)
    body = trainable_parameters(shared)
    if not body:
        raise ValueError("shared has no parameter that requires a gradient")
    head = exclude(trainable_parameters(heads), body)
    outputs = [features] if isinstance(features, (Tensor, MicroBatches)) else list(features or ())
    if outputs and len(head) < len(trainable_parameters(heads)):
        raise ValueError(
            "a parameter is in shared and in heads, so its gradient does not stop at features: leave them out"
        )
    tensors = Tensors(
        names=names,
        losses=values,
        guide=guide if reads_guide(scheme) else None,
        shared=body,
        heads=head,
        head_losses=find_positions(names, head_losses),
        voting=voting_parameters(body, voting),
        passes=make_passes(outputs, head),
        scale=_scale(scaler, values[0]),
        processes=processes,
    )
    check_sharded(tensors)
    try:
        report, found = _combine(tensors, scheme, rate_multipliers(tensors.voting, metric))
        own = private_gradients(private, tensors.scale)
    except NonFiniteError:
        if scaler is None or not scaler.is_enabled():
            raise
        poison_gradients([*body, *head, *(p for _, network in private for p in trainable_parameters(network))])
        numbers = tensors.values().cpu().numpy()[: len(names)]
        return Report(names, numbers, equal(len(names)), Move.SKIPPED, finite=False)
    write_gradients([*found, *own])
    return report


def _scale(scaler: torch.amp.GradScaler | None, loss: Tensor) -> float:
    """The scaler's factor; asking it for a scaled loss makes it ready on its first use."""
    if scaler is None or not scaler.is_enabled():
        return 1.0
    scaler.scale(loss.detach())
    return float(scaler.get_scale())


def _combine(tensors: Tensors, scheme: Scheme, rates: Sequence[float]) -> tuple[Report, Gradients]:
    """The gradients of the shared parameters and of the heads, by one backward pass where the scheme allows it."""
    if isinstance(scheme, AheadScheme):
        numbers = tensors.values().cpu().numpy()
        tensors.check_losses(numbers)
        ahead = scheme.ahead(numbers[: len(tensors.names)])
        if ahead is not None:
            return Report(tensors.names, numbers[: len(tensors.names)], ahead.alpha, ahead.move), _weighted_backward(
                tensors, ahead
            )
    return _vote(tensors, scheme, rates)


def _weighted_backward(tensors: Tensors, weights: Weights) -> Gradients:
    """One ordinary backward pass of the weighted sum (and one through the heads alone, where theirs is another)."""
    factors: list[float] = (len(tensors.names) * weights.alpha).tolist()
    head_factors = tensors.head_weights(weights)
    heads: Row = []
    together = not tensors.heads or head_factors == factors
    if not together:
        heads = vjp([tensors.weighted_sum(head_factors)], tensors.heads, None, keep=True)
    found = [*sum_gradient(tensors, factors, heads=together), *heads]
    if tensors.processes.any(not all_finite(found)):
        involved = [name for name, factor in zip(tensors.names, factors, strict=True) if factor]
        raise NonFiniteError(
            f"the gradient of {' + '.join(map(repr, involved))} is not finite; no gradient was written"
        )
    return list(zip([*tensors.shared, *tensors.heads], found, strict=True))


def _vote(tensors: Tensors, scheme: Scheme, rates: Sequence[float]) -> tuple[Report, Gradients]:
    """Rows, their inner products, the scheme's weights, and the combination of the rows."""
    size = len(tensors.names)
    rows, heads, cotangents = compute_rows(tensors)
    count = len(rows)
    several = tensors.processes.size > 1
    pieces = scatter_rows(rows, tensors.voting, tensors.processes) if several else None
    products = tensors.processes.sum(gram(rows if pieces is None else pieces.rows, rates))
    numbers = torch.cat([products.reshape(-1), tensors.values().to(products.device)]).cpu().numpy()
    table = numbers[: count**2].reshape(count, count) / tensors.scale**2
    values = numbers[count**2 :]
    check_rows(tensors, table, values, heads)
    del rows[size:]
    weights = scheme(make_problem(tensors, table, values))
    factors: list[float] = (size * weights.alpha).tolist()
    if tensors.exact and pieces is not None:
        body = pieces.collected(factors, tensors.shared)
    elif tensors.exact:
        body = [combine_and_free(rows, index, factors) for index in range(len(tensors.shared))]
    elif tensors.passes is not None:
        body = sum_over_processes(
            tensors.passes.weighted(cotangents[:size], factors, tensors.shared), tensors.processes
        )
    else:
        body = sum_gradient(tensors, factors, heads=False)
    head_factors = tensors.head_weights(weights)
    head = [combine([row[index] for row in heads], head_factors) for index in range(len(tensors.heads))]
    found = list(zip([*tensors.shared, *tensors.heads], [*body, *head], strict=True))
    return make_report(tensors, table, values, weights), found
