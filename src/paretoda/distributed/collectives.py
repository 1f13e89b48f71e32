"""Several processes that train one network: which samples each has, and the collective operations between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist


class LostProcessError(RuntimeError):
    """Another process has ended, or does not answer.

    Args:
        text: What is known about it.
        speaks: Whether this process is the one that reports it to the user.
    """

    def __init__(self, text: str, speaks: bool = True) -> None:
        super().__init__(text)
        self.speaks = speaks


@dataclass(frozen=True)
class Processes:
    """This process among those of torch's default group; with a single process nothing is communicated.

    All processes must call every method except `share`, in the same order.

    Args:
        rank: Rank of this process, from 0.
        size: Number of processes.
    """

    rank: int = 0
    size: int = 1

    def share(self, count: int) -> slice:
        """Return which of `count` items belong to this process: consecutive ones, equally many for all or one more.

        >>> [Processes(rank, 3).share(7) for rank in range(3)]
        [slice(0, 3, None), slice(3, 5, None), slice(5, 7, None)]
        """
        each, more = divmod(count, self.size)
        start = self.rank * each + min(self.rank, more)
        return slice(start, start + each + (self.rank < more))

    def sum(self, tensor: Tensor) -> Tensor:
        """Replace the tensor by its sum over all processes, in place, and return it."""
        if self.size > 1:
            with _lost_process_errors():
                dist.all_reduce(tensor)
        return tensor

    def mean(self, tensor: Tensor) -> Tensor:
        """Return the mean over all processes of a tensor that is the same everywhere but for rounding."""
        return self.sum(tensor / self.size) if self.size > 1 else tensor

    def any(self, flag: bool) -> bool:
        """Return whether the flag is true in any of the processes."""
        return flag if self.size == 1 else bool(self.sum(torch.tensor([int(flag)])).item())

    def gather_numbers(self, *own: int) -> tuple[tuple[int, ...], ...]:
        """Return these integers of every process."""
        if self.size == 1:
            return (own,)
        return tuple(tuple(row.tolist()) for row in self._all_gather(torch.tensor(own)))

    def gather(self, rows: Tensor, counts: Sequence[int]) -> Tensor:
        """Return the rows of all processes, in the order of their ranks.

        Args:
            rows: Rows of this process, shape (n, ...); all dimensions but n are the same everywhere.
            counts: n of every process.
        """
        if self.size == 1:
            return rows
        padded = rows.new_zeros(max(counts), *rows.shape[1:])
        padded[: len(rows)] = rows.detach()
        return torch.cat([found[:count] for found, count in zip(self._all_gather(padded), counts, strict=True)])

    def gather_rows(self, rows: Tensor) -> Tensor:
        """Return the rows of all processes where the counts are not known yet."""
        return self.gather(rows, [count for (count,) in self.gather_numbers(len(rows))])

    def reduce_scatter(self, flat: Tensor) -> Tensor:
        """Return this process's part of the sum over all processes.

        Args:
            flat: Flat tensor whose length is a multiple of the number of processes.
        """
        if self.size == 1:
            return flat
        own = flat.new_empty(len(flat) // self.size)
        with _lost_process_errors():
            dist.reduce_scatter(own, list(flat.chunk(self.size)))
        return own

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Give every tensor the values that it has in the first process."""
        for tensor in tensors if self.size > 1 else ():
            with _lost_process_errors():
                dist.broadcast(tensor, src=0)

    def _all_gather(self, tensor: Tensor) -> list[Tensor]:
        found = [torch.empty_like(tensor) for _ in range(self.size)]
        with _lost_process_errors():
            dist.all_gather(found, tensor.contiguous())
        return found


SINGLE_PROCESS = Processes()


def current_processes() -> Processes:
    """Return the processes of torch's default group; `SINGLE_PROCESS` where there is none."""
    if not (dist.is_available() and dist.is_initialized()):
        return SINGLE_PROCESS
    return Processes(dist.get_rank(), dist.get_world_size())


@contextmanager
def _lost_process_errors() -> Iterator[None]:
    """Turn the errors that torch raises when a process does not answer into a `LostProcessError`."""
    try:
        yield
    except LostProcessError:
        raise
    except RuntimeError as error:
        raise LostProcessError(f"another process does not answer ({str(error).splitlines()[0]})") from error


@dataclass(frozen=True)
class BatchSplit:
    """How one pass through the encoder is split over the processes.

    The joint batch consists of the parts (source, target) one after the other, each in the order of the ranks.

    Args:
        processes: Processes of the run.
        counts: For each process, its number of samples of each part.
        synchronised: Whether BatchNorm uses the statistics of all processes together.
    """

    processes: Processes
    counts: tuple[tuple[int, ...], ...]
    synchronised: bool = True

    @property
    def total(self) -> int:
        """Number of samples of the joint batch."""
        return sum(map(sum, self.counts))

    def part(self, index: int) -> BatchSplit:
        """Return the split of a pass of one of the parts only."""
        return BatchSplit(self.processes, tuple((row[index],) for row in self.counts), self.synchronised)

    def counts_of(self, index: int) -> list[int]:
        """Return the number of samples of one part in every process."""
        return [row[index] for row in self.counts]

    def rows(self, rank: int | None = None) -> Tensor:
        """Return the rows of the joint batch that a process (by default this one) has, shape (n,)."""
        rank = self.processes.rank if rank is None else rank
        starts = accumulate((sum(self.counts_of(part)) for part in range(len(self.counts[0]))), initial=0)
        found = []
        for part, start in zip(range(len(self.counts[0])), starts, strict=False):
            before = start + sum(self.counts_of(part)[:rank])
            found.append(torch.arange(before, before + self.counts[rank][part]))
        return torch.cat(found)

    def gather_features(self, features: Tensor) -> Tensor:
        """Return the features of the joint batch; their gradient reaches each process's own samples.

        Every process computes the same losses of the joint batch, so that nothing is summed in the backward pass.
        """
        if self.processes.size == 1:
            return features
        joint: Tensor = _GatherFeatures.apply(features, self)  # type: ignore[no-untyped-call]
        return joint


class _GatherFeatures(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, split: BatchSplit) -> Tensor:
        ctx.rows = split.rows().to(features.device)
        found = split.processes.gather(features, [sum(row) for row in split.counts])
        if len(split.counts[0]) == 1:
            return found
        order = torch.cat([split.rows(rank) for rank in range(split.processes.size)]).to(features.device)
        joint = torch.empty_like(found)
        joint[order] = found
        return joint

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor, None]:
        return cotangents[0][ctx.rows], None
