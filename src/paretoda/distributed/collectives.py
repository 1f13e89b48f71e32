"""Several processes that train one network: who has which samples, and the few things that they tell each other."""

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
        text: what is known of it.
        speaks: whether this process is the one to tell the user.
    """

    def __init__(self, text: str, speaks: bool = True) -> None:
        super().__init__(text)
        self.speaks = speaks


@dataclass(frozen=True)
class Processes:
    """This process among those of torch's default group; one that is alone tells nobody anything.

    Everything but `share` must be called by all of them, in the same order.

    Args:
        rank: of this process, from 0.
        size: how many there are.
    """

    rank: int = 0
    size: int = 1

    def share(self, count: int) -> slice:
        """Which of `count` things are this process's: consecutive ones, as many as the others have, or one more."""
        each, more = divmod(count, self.size)
        start = self.rank * each + min(self.rank, more)
        return slice(start, start + each + (self.rank < more))

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in the tensor's own memory."""
        if self.size > 1:
            with _answers():
                dist.all_reduce(tensor)
        return tensor

    def mean(self, tensor: Tensor) -> Tensor:
        """The mean of what is the same everywhere but for rounding: identical numbers."""
        return self.sum(tensor / self.size) if self.size > 1 else tensor

    def any(self, flag: bool) -> bool:
        """Whether it is true in any of the processes."""
        return flag if self.size == 1 else bool(self.sum(torch.tensor([int(flag)])).item())

    def numbers(self, *own: int) -> tuple[tuple[int, ...], ...]:
        """These whole numbers of every process."""
        if self.size == 1:
            return (own,)
        return tuple(tuple(row.tolist()) for row in self._gathered(torch.tensor(own)))

    def gather(self, rows: Tensor, counts: Sequence[int]) -> Tensor:
        """The rows of all processes, those of the first process first.

        Args:
            rows: of this process, shape (n, ...); all shapes but for n are the same everywhere.
            counts: n of every process.
        """
        if self.size == 1:
            return rows
        padded = rows.new_zeros(max(counts), *rows.shape[1:])
        padded[: len(rows)] = rows.detach()
        return torch.cat([found[:count] for found, count in zip(self._gathered(padded), counts, strict=True)])

    def gather_rows(self, rows: Tensor) -> Tensor:
        """The same where nobody knows the counts yet."""
        return self.gather(rows, [count for (count,) in self.numbers(len(rows))])

    def scatter_sum(self, flat: Tensor) -> Tensor:
        """This process's part of the sum over all processes; the length is a multiple of their number."""
        if self.size == 1:
            return flat
        own = flat.new_empty(len(flat) // self.size)
        with _answers():
            dist.reduce_scatter(own, list(flat.chunk(self.size)))
        return own

    def first(self, tensors: Iterable[Tensor]) -> None:
        """Give every tensor the values that it has in the first process."""
        for tensor in tensors if self.size > 1 else ():
            with _answers():
                dist.broadcast(tensor, src=0)

    def _gathered(self, tensor: Tensor) -> list[Tensor]:
        found = [torch.empty_like(tensor) for _ in range(self.size)]
        with _answers():
            dist.all_gather(found, tensor.contiguous())
        return found


SINGLE_PROCESS = Processes()


def current_processes() -> Processes:
    """The processes of torch's default group; `ALONE` where there is none."""
    if not (dist.is_available() and dist.is_initialized()):
        return SINGLE_PROCESS
    return Processes(dist.get_rank(), dist.get_world_size())


@contextmanager
def _answers() -> Iterator[None]:
    """Where a process does not answer, torch raises what its library says; here that is one kind of error."""
    try:
        yield
    except LostProcessError:
        raise
    except RuntimeError as error:
        raise LostProcessError(f"another process does not answer ({str(error).splitlines()[0]})") from error


@dataclass(frozen=True)
class BatchSplit:
    """How one pass through the encoder is spread over the processes.

    The joint batch has the parts (source, target) one after the other, each in the order of the processes.

    Args:
        processes: of the run.
        counts: for each process, its number of samples of each part.
        synchronised: whether BatchNorm's statistics are of all processes together.
    """

    processes: Processes
    counts: tuple[tuple[int, ...], ...]
    synchronised: bool = True

    @property
    def whole(self) -> int:
        """Samples of the joint batch."""
        return sum(map(sum, self.counts))

    def part(self, index: int) -> BatchSplit:
        """The same for a pass of one of the parts alone."""
        return BatchSplit(self.processes, tuple((row[index],) for row in self.counts), self.synchronised)

    def of_part(self, index: int) -> list[int]:
        """The number of samples of one part in every process."""
        return [row[index] for row in self.counts]

    def places(self, rank: int | None = None) -> Tensor:
        """Where the samples of a process (this one) are in the joint batch, shape (n,)."""
        rank = self.processes.rank if rank is None else rank
        starts = accumulate((sum(self.of_part(part)) for part in range(len(self.counts[0]))), initial=0)
        found = []
        for part, start in zip(range(len(self.counts[0])), starts, strict=False):
            before = start + sum(self.of_part(part)[:rank])
            found.append(torch.arange(before, before + self.counts[rank][part]))
        return torch.cat(found)

    def joined(self, features: Tensor) -> Tensor:
        """The features of the joint batch; a gradient for them reaches each process's own samples.

        Every process computes the same losses of the joint batch, so that nothing is added on the way back.
        """
        if self.processes.size == 1:
            return features
        joint: Tensor = _Joined.apply(features, self)  # type: ignore[no-untyped-call]
        return joint


class _Joined(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, shares: BatchSplit) -> Tensor:
        ctx.places = shares.places().to(features.device)
        found = shares.processes.gather(features, [sum(row) for row in shares.counts])
        if len(shares.counts[0]) == 1:
            return found
        order = torch.cat([shares.places(rank) for rank in range(shares.processes.size)]).to(features.device)
        joint = torch.empty_like(found)
        joint[order] = found
        return joint

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor, None]:
        return cotangents[0][ctx.places], None
