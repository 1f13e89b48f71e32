"""`paretoda.backward`: the counterpart of `loss.backward()` for several losses with conflicting gradients.

It has many arguments because each names one group of tensors of the caller's own loop; all but two have defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from paretoda.core.problem import AheadScheme, Move, Scheme, Weights, add_offsets, reads_guide
from paretoda.core.simplex import equal
from paretoda.distributed.collectives import SINGLE_PROCESS, Processes
from paretoda.gradients.fsdp import is_gathered
from paretoda.gradients.gram import Row, gram
from paretoda.gradients.micro_batches import MicroBatches, make_passes
from paretoda.gradients.reduce import scatter_rows, sum_over_processes
from paretoda.gradients.report import NonFiniteError, Report
from paretoda.gradients.rows import check_rows, combine_and_free, compute_rows, make_problem, make_report, sum_gradient
from paretoda.gradients.tensors import (
    Gradients,
    Losses,
    Metric,
    Parameters,
    Private,
    Tensors,
    Voting,
    all_finite,
    check_sharded,
    exclude,
    find_offsets,
    find_parameters,
    find_positions,
    name_losses,
    poison_gradients,
    private_gradients,
    rate_multipliers,
    trainable_parameters,
    voting_parameters,
    write_gradients,
)
from paretoda.gradients.vjp import combine, vjp


def backward(  # noqa: PLR0913 - see the module's first lines
    losses: Losses,
    *,
    scheme: Scheme,
    shared: Parameters | None = None,
    guide: Tensor | None = None,
    features: Tensor | MicroBatches | Sequence[Tensor | MicroBatches] | None = None,
    heads: Parameters = (),
    head_losses: Sequence[str | int] | None = None,
    private: Private = (),
    voting: Voting = "all",
    metric: Metric = None,
    scaler: torch.amp.GradScaler | None = None,
    processes: Processes = SINGLE_PROCESS,
    offsets: Mapping[str, float] | None = None,
) -> Report:
    """Fill `.grad` with the direction that the scheme chooses, and report the choice.

    Afterwards the shared parameters hold m Σ alpha_i ∇L_i, the heads the gradient of their own losses, and each private
    network that of its loss and of nothing else. As with `loss.backward()`, gradients are added to what `.grad` held
    before, and clipping, accumulation and the optimiser come after. Nothing is written unless everything is finite.

    Args:
        losses: Objectives, scalars; as a mapping they have names ("source", "alignment", "target").
        scheme: Scheme that chooses the weights, for example `paretoda.schemes.ParetoDA()`.
        shared: Module (or its parameters) whose gradients conflict: the encoder. None: the parameters that `features`
            were computed with, found by a walk through their graph.
        guide: Loss on held-out target data, for schemes that follow one.
        features: Output of the encoder, one tensor for each of its forward passes (including the guide's); then the
            heads are differentiated once for each loss and the body once for each loss and pass. Every path from a loss
            to a shared parameter must go through them. Without it the result is the same and costs more. Batches whose
            graph does not fit in memory are given as `MicroBatches`.
        heads: Parameters behind the encoder that several losses share: the classifier.
        head_losses: Losses (by name or position) that reach the heads, unweighted (but in the units of a scheme that
            calibrates them). None: the same weighted sum as for
            the shared parameters where the weights do not come from gradients (`linear`, `dwa`, ...), all losses
            otherwise.
        private: Pairs of a loss and the network that alone follows it, for example a discriminator's.
        voting: Parameters whose inner products the scheme sees: "all" shared parameters (exact), the "last" layer's
            (cheap: one ordinary backward pass afterwards), or any of them.
        metric: Optimiser, so that inner products are weighted by learning rates; or a mapping from parameter to rate.
        scaler: Gradient scaler for float16: it scales every loss and receives non-finite steps, so that it skips them
            and backs off.
        processes: Several processes that have encoded their own samples, joined the features and computed the same
            losses: the gradients of the shared parameters are summed over them, all others are already the same
            everywhere.
        offsets: Offsets by the names of losses, 0 for the others. A scheme that takes logarithms or ratios of losses
            (`famo`, `epo`, ...) reads the offset plus the loss, or the offset alone for a negative loss; gradients do
            not change. A loss that may be 0 or negative needs one: log 2 for log 2 minus the cross-entropy of a
            discriminator.

    Returns:
        The weights, the rule that chose them, the losses and the cosines between the gradients.

    Raises:
        NonFiniteError: A loss or gradient is NaN or infinite; the message names the objective, and no `.grad` was
            touched.
        ValueError: The arguments contradict each other, or `shared` is missing and cannot be found.

    Examples:
        >>> from torch import nn
        >>> from paretoda.schemes import MGDA
        >>> encoder = nn.Linear(4, 2)
        >>> features = encoder(torch.randn(8, 4))
        >>> losses = {"source": features.square().mean(), "alignment": features.mean(0).square().sum()}
        >>> report = backward(losses, shared=encoder, scheme=MGDA())
        >>> report.names, encoder.weight.grad.shape
        (('source', 'alignment'), torch.Size([2, 4]))
    """
    names, values = name_losses(losses)
    outputs = [features] if isinstance(features, (Tensor, MicroBatches)) else list(features or ())
    body = _find_shared(outputs, processes) if shared is None else _check_shared(shared)
    head = exclude(trainable_parameters(heads), body)
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
        offsets=find_offsets(names, offsets or {}),
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


def _check_shared(shared: Parameters) -> list[Tensor]:
    """Return the trainable parameters of what the caller named."""
    if is_gathered(shared):
        raise ValueError("FSDP has not sharded the encoder again: fully_shard(..., reshard_after_forward=True)")
    body = trainable_parameters(shared)
    if not body:
        raise ValueError("shared has no parameter that requires a gradient")
    return body


def _find_shared(outputs: Sequence[Tensor | MicroBatches], processes: Processes) -> list[Tensor]:
    """Return the parameters that the features were computed with."""
    if not outputs:
        raise ValueError("shared is missing: give the encoder as shared, or what it returned as features")
    if processes.size > 1:
        raise ValueError("with several processes the encoder cannot be found from features: give it as shared")
    batches = [output.encoder for output in outputs if isinstance(output, MicroBatches)]
    if batches:
        return trainable_parameters([parameter for encoder in batches for parameter in encoder.parameters()])
    body = find_parameters([output for output in outputs if isinstance(output, Tensor)])
    if not body:
        raise ValueError(
            "shared cannot be found because no parameter was used to compute features: give what the encoder returned, "
            "not a detached copy, or give the encoder as shared"
        )
    return body


def _scale(scaler: torch.amp.GradScaler | None, loss: Tensor) -> float:
    """Return the scaler's factor; asking it for a scaled loss initialises it on its first use."""
    if scaler is None or not scaler.is_enabled():
        return 1.0
    scaler.scale(loss.detach())
    return float(scaler.get_scale())


def _combine(tensors: Tensors, scheme: Scheme, rates: Sequence[float]) -> tuple[Report, Gradients]:
    """Compute the gradients of shared parameters and heads, by one backward pass where the scheme allows it."""
    if isinstance(scheme, AheadScheme):
        numbers = tensors.values().cpu().numpy()
        tensors.check_losses(numbers)
        values = numbers[: len(tensors.names)]
        tensors.check_signs(values, scheme)
        ahead = scheme.ahead(add_offsets(values, tensors.offsets))
        if ahead is not None:
            report = Report(tensors.names, values, ahead.alpha, ahead.move, units=ahead.units)
            return report, _weighted_backward(tensors, ahead)
    return _vote(tensors, scheme, rates)


def _weighted_backward(tensors: Tensors, weights: Weights) -> Gradients:
    """Run one ordinary backward pass of the weighted sum (and one through the heads alone, if their weights differ)."""
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
    """Compute the rows, their inner products, the scheme's weights, and the combination of the rows."""
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
    tensors.check_signs(values, scheme)
    weights = scheme(make_problem(tensors, table, values))
    factors: list[float] = (size * weights.alpha).tolist()
    if tensors.exact and pieces is not None:
        body = pieces.collect(factors, tensors.shared)
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
