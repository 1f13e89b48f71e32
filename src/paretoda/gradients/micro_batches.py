"""Torch's generators as they are now, to draw the same once more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from paretoda.distributed.layers import drawn_for_all
from paretoda.gradients.gram import Row
from paretoda.gradients.vjp import FeaturePasses, vjp
from paretoda.models.batchnorm import frozen_statistics, pooled_statistics


@dataclass(frozen=True, eq=False)
class RandomState:
    """The state of the generators that a network on one device draws from.

    Args:
        device: Of the network.
        states: Of the CPU's generator and, on a GPU, of that device's.
    """

    device: torch.device
    states: tuple[Tensor, ...]

    @classmethod
    def now(cls, device: torch.device) -> RandomState:
        """As they are."""
        own = (torch.cuda.get_rng_state(device),) if device.type == "cuda" else ()
        return cls(device, (torch.get_rng_state(), *own))

    @contextmanager
    def again(self) -> Iterator[None]:
        """Inside, they are as they were; afterwards as before."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.set_rng_state(self.states[0])
            if len(self.states) > 1:
                torch.cuda.set_rng_state(self.states[1], self.device)
            yield


class MicroBatches:
    """The features of a batch, computed in parts without a graph; `paretoda.backward` makes the graphs part by part.

    Both forward passes of a part are the same: dropout drops what it would have dropped in the whole batch, BatchNorm
    normalises by the part and remembers the whole batch once. Other random layers draw the same for every part.

    Args:
        encoder: Inputs (n, ...) to features (n, ...).
        inputs: The batch; or several, of the same shape but for their rows, that BatchNorm takes for one: every part
            has its share of each.
        parts: How many; never more than there are rows.
        remember: Whether BatchNorm's running statistics learn of the batch.
        keep_last: Also keep what goes into the last layer of a sequential encoder, so that gradients of that layer
            alone need no pass through the rest.
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
            "cache_enabled": False,  # what is cast without a graph must not be found by a pass with one
        }
        self._chance = RandomState.now(device)
        self._below: list[Tensor] = []
        self._last: tuple[nn.Module, RandomState] | None = None
        with pooled_statistics(encoder) if remember else frozen_statistics(encoder):
            self.features = self._look(keep_last and isinstance(encoder, nn.Sequential) and len(encoder) > 1)

    def __len__(self) -> int:
        return len(self._parts)

    def split(self) -> tuple[Tensor, ...]:
        """The features of each of the inputs."""
        return self.features.split_with_sizes(self.sizes)

    def _look(self, in_two: bool) -> Tensor:
        """The features of all rows, a leaf that wants a gradient."""
        whole: Tensor | None = None
        for number, (rows, part) in enumerate(self._parts):
            # The first part moves chance on as the whole batch would; the others draw the same once more.
            with nullcontext() if number == 0 else self._chance.again(), self._as_part(rows):
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
        return drawn_for_all(self.encoder, sum(self.sizes), rows)

    @contextmanager
    def again(self, number: int, wanted: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """A part's features with a graph down to the wanted parameters, and its rows in the whole batch.

        The layers stay as they are in this pass until the end of the context: checkpointed ones run once more in it.
        """
        rows, part = self._parts[number]
        network, chance = self.encoder, self._chance
        if self._last is not None and _has_all(self._last[0], wanted):
            (network, chance), part = self._last, self._below[number]
        with self._as_part(rows), frozen_statistics(self.encoder):
            with chance.again(), torch.enable_grad(), torch.autocast(**self._autocast):
                features: Tensor = network(part)
            yield features, rows


def _split(inputs: Sequence[Tensor], parts: int) -> list[tuple[Tensor, Tensor]]:
    """For every part, its rows in the whole batch and their inputs."""
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
    """Gradients in two stages, where the body's graphs are made when they are needed: one part at a time.

    Args:
        batches: The body's forward passes.
        heads: Parameters above the features that are differentiated along with them.
    """

    def __init__(self, batches: Sequence[MicroBatches], heads: Sequence[Tensor]) -> None:
        super().__init__([batch.features for batch in batches], heads)
        self.batches = list(batches)

    def through_body(self, cotangents: Sequence[Row], inputs: Sequence[Tensor], *, keep: bool) -> list[Row]:
        """One row for each objective: the sum over parts, each of which is forwarded once for all objectives.

        Args:
            cotangents: For each objective, one for each pass.
            inputs: The parameters.
            keep: Without effect: a part's graph is never kept, it is made anew.
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
    """What `paretoda.backward` differentiates in two stages; None where no features were given."""
    batches = [feature for feature in features if isinstance(feature, MicroBatches)]
    tensors = [feature for feature in features if isinstance(feature, Tensor)]
    if batches and tensors:
        raise ValueError("features are tensors or MicroBatches, not both: put the others in one part, parts=1")
    if batches:
        return MicroBatchPasses(batches, heads)
    return FeaturePasses(tensors, heads) if tensors else None
