"""Batches whose graph does not fit in memory: features are computed in parts, and graphs are built part by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from paretoda.distributed.layers import shared_dropout
from paretoda.gradients.gram import Row
from paretoda.gradients.vjp import FeaturePasses, vjp
from paretoda.models.batchnorm import frozen_statistics, pooled_statistics


@dataclass(frozen=True, eq=False)
class RandomState:
    """State of the generators that a network on one device draws from.

    Args:
        device: Device of the network.
        states: States of the CPU's generator and, on a GPU, of that device's generator.
    """

    device: torch.device
    states: tuple[Tensor, ...]

    @classmethod
    def now(cls, device: torch.device) -> RandomState:
        """Return the present state."""
        own = (torch.cuda.get_rng_state(device),) if device.type == "cuda" else ()
        return cls(device, (torch.get_rng_state(), *own))

    @contextmanager
    def again(self) -> Iterator[None]:
        """Inside, the generators have this state; afterwards they continue as before."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.set_rng_state(self.states[0])
            if len(self.states) > 1:
                torch.cuda.set_rng_state(self.states[1], self.device)
            yield


class MicroBatches:
    """Features of a batch, computed in parts without a graph; `paretoda.backward` builds the graphs part by part.

    Both forward passes of a part are the same: dropout drops what it would have dropped in the whole batch, and
    BatchNorm normalises by the part and updates its running statistics once for the whole batch. Other random layers
    draw the same for every part.

    Args:
        encoder: Network from inputs (n, ...) to features (n, ...).
        inputs: The batch, or several batches of the same shape but for their rows, which BatchNorm treats as one: every
            part has its share of each.
        parts: Number of parts; never more than there are rows.
        remember: Whether BatchNorm's running statistics are updated with the batch.
        keep_last: Keep the input of the last layer of a sequential encoder, so that gradients of that layer alone need
            no pass through the rest.

    Raises:
        ValueError: There are fewer than one part, or no rows.

    Examples:
        >>> from paretoda.gradients import backward
        >>> from paretoda.schemes import MGDA
        >>> encoder = nn.Linear(4, 2)
        >>> batch = MicroBatches(encoder, torch.randn(8, 4), parts=4)
        >>> losses = [batch.features.square().mean(), batch.features.mean(0).square().sum()]
        >>> _ = backward(losses, shared=encoder, features=batch, scheme=MGDA())
        >>> len(batch), encoder.weight.grad.shape
        (4, torch.Size([2, 4]))
    """

    def __init__(
        self,
        encoder: nn.Module,
        inputs: Tensor | Sequence[Tensor],
        parts: int,
        *,
        remember: bool = True,
        keep_last: bool = False,
    ) -> None:
        given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
        if parts < 1:
            raise ValueError(f"a batch has at least one part, got {parts}")
        if not given or not all(map(len, given)):
            raise ValueError("there is nothing in the batch: give at least one row of each input")
        self.encoder = encoder
        self.sizes = [len(tensor) for tensor in given]
        self._parts = _split(given, min(parts, *self.sizes))
        device = given[0].device
        self._autocast: dict[str, Any] = {
            "device_type": device.type,
            "dtype": torch.get_autocast_dtype(device.type),
            "enabled": torch.is_autocast_enabled(device.type),
            "cache_enabled": False,  # casts without a graph must not be reused by a pass with one
        }
        self._random = RandomState.now(device)
        self._below: list[Tensor] = []
        self._last: tuple[nn.Module, RandomState] | None = None
        with pooled_statistics(encoder) if remember else frozen_statistics(encoder):
            self.features = self._compute_features(
                keep_last and isinstance(encoder, nn.Sequential) and len(encoder) > 1
            )

    def __len__(self) -> int:
        return len(self._parts)

    def split(self) -> tuple[Tensor, ...]:
        """Return the features of each of the inputs."""
        return self.features.split_with_sizes(self.sizes)

    def _compute_features(self, in_two: bool) -> Tensor:
        """Return the features of all rows, a leaf that requires a gradient."""
        whole: Tensor | None = None
        for number, (rows, part) in enumerate(self._parts):
            # The first part advances the generators as the whole batch would; the others draw the same again.
            with nullcontext() if number == 0 else self._random.again(), self._as_part(rows):
                found = self._features_in_two(part) if in_two else self._features(self.encoder, part)
            if whole is None:
                whole = found.new_empty((sum(self.sizes), *found.shape[1:]))
            whole[rows] = found
        assert whole is not None
        return whole.requires_grad_()

    @torch.no_grad()
    def _features(self, network: nn.Module, part: Tensor) -> Tensor:
        with torch.autocast(**self._autocast):
            found: Tensor = network(part)
        return found

    def _features_in_two(self, part: Tensor) -> Tensor:
        assert isinstance(self.encoder, nn.Sequential)
        below = self._features(self.encoder[:-1], part)
        self._below.append(below)
        if self._last is None:
            self._last = (self.encoder[-1], RandomState.now(part.device))
        return self._features(self.encoder[-1], below)

    def _as_part(self, rows: Tensor) -> AbstractContextManager[None]:
        return shared_dropout(self.encoder, sum(self.sizes), rows)

    @contextmanager
    def again(self, number: int, wanted: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield a part's features with a graph down to the wanted parameters, and its rows in the whole batch.

        The layers stay as they are in this pass until the end of the context, because checkpointed ones run again in
        it.
        """
        rows, part = self._parts[number]
        network, random = self.encoder, self._random
        if self._last is not None and _has_all(self._last[0], wanted):
            (network, random), part = self._last, self._below[number]
        with self._as_part(rows), frozen_statistics(self.encoder):
            with random.again(), torch.enable_grad(), torch.autocast(**self._autocast):
                features: Tensor = network(part)
            yield features, rows


def _split(inputs: Sequence[Tensor], parts: int) -> list[tuple[Tensor, Tensor]]:
    """Return for every part its rows in the whole batch and their inputs."""
    device, start = inputs[0].device, 0
    rows: list[list[Tensor]] = [[] for _ in range(parts)]
    shares: list[list[Tensor]] = [[] for _ in range(parts)]
    for tensor in inputs:
        own = torch.arange(start, start + len(tensor), device=device)
        for place, (some, share) in enumerate(zip(own.tensor_split(parts), tensor.tensor_split(parts), strict=True)):
            rows[place].append(some)
            shares[place].append(share)
        start += len(tensor)
    return [(torch.cat(some), torch.cat(share)) for some, share in zip(rows, shares, strict=True)]


def _has_all(module: nn.Module, wanted: Sequence[Tensor]) -> bool:
    own = {id(parameter) for parameter in module.parameters()}
    return all(id(tensor) in own for tensor in wanted)


class MicroBatchPasses(FeaturePasses):
    """Gradients in two stages, where the body's graphs are built when they are needed, one part at a time.

    Args:
        batches: Forward passes of the body.
        heads: Parameters above the features that are differentiated along with them.
    """

    def __init__(self, batches: Sequence[MicroBatches], heads: Sequence[Tensor]) -> None:
        super().__init__([batch.features for batch in batches], heads)
        self.batches = list(batches)

    def through_body(self, cotangents: Sequence[Row], inputs: Sequence[Tensor], *, keep: bool) -> list[Row]:
        """Return one row for each objective: the sum over parts, each of which is forwarded once for all objectives.

        Args:
            cotangents: For each objective, one cotangent for each pass.
            inputs: Parameters.
            keep: Without effect: the graph of a part is never kept but built again.
        """
        del keep
        rows: list[Row] = [[None] * len(inputs) for _ in cotangents]
        for place, batch in enumerate(self.batches):
            mine = [
                (row, given) for row, each in zip(rows, cotangents, strict=True) if (given := each[place]) is not None
            ]
            for number in range(len(batch) if mine else 0):
                with batch.again(number, inputs) as (features, where):
                    for count, (row, given) in enumerate(mine, 1):
                        _add(row, vjp([features], inputs, [given[where]], keep=count < len(mine)))
        return rows

    def _product(self, cotangents: Row, inputs: Sequence[Tensor], *, keep: bool) -> Row:
        return self.through_body([cotangents], inputs, keep=keep)[0]


def _add(row: Row, more: Row) -> None:
    for index, gradient in enumerate(more):
        if gradient is not None:
            mine = row[index]
            row[index] = gradient if mine is None else mine + gradient  # autograd may return one tensor twice


def make_passes(features: Sequence[Tensor | MicroBatches], heads: Sequence[Tensor]) -> FeaturePasses | None:
    """Return the passes that `paretoda.backward` differentiates in two stages; None without features.

    Raises:
        ValueError: There are both tensors and MicroBatches.
    """
    batches = [feature for feature in features if isinstance(feature, MicroBatches)]
    tensors = [feature for feature in features if isinstance(feature, Tensor)]
    if batches and tensors:
        raise ValueError("features are tensors or MicroBatches, not both: put the others in one part, parts=1")
    if batches:
        return MicroBatchPasses(batches, heads)
    return FeaturePasses(tensors, heads) if tensors else None
