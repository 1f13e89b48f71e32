"""Gradients of several processes: each has those of its own samples, and their sum counts.

Rows that are compared are summed in pieces: every process gets one piece of each row and takes the inner products of
its pieces, and only these few numbers are added up. With m objectives, a guide and d parameters this moves (m + 2) d
numbers instead of the 2 (m + 1) d of whole rows, and holds a row only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate

import torch
from torch import Tensor

from paretoda.distributed.collectives import Processes
from paretoda.gradients.fsdp import is_sharded
from paretoda.gradients.gram import Row
from paretoda.gradients.vjp import combine


def sum_over_processes(row: Row, processes: Processes) -> Row:
    """Return the sum of this row over all processes; FSDP has already summed what it has sharded."""
    found = list(row)
    own = [index for index, tensor in enumerate(row) if tensor is not None and not is_sharded([tensor])]
    if processes.size == 1 or not own:
        return found
    present = [tensor for index in own if (tensor := row[index]) is not None]
    flat = processes.sum(torch.cat([tensor.reshape(-1) for tensor in present]))
    for index, tensor, piece in zip(own, present, flat.split_with_sizes([t.numel() for t in present]), strict=True):
        found[index] = piece.view(tensor.shape)
    return found


@dataclass(frozen=True, eq=False)
class Pieces:
    """One piece of every row, where a row is laid out flat, parameter after parameter.

    Args:
        rows: For each parameter its entries in the piece, flat; None where there are none.
        present: For each row and parameter, whether the loss depends on it.
        length: Length of the piece.
        starts: Start of each parameter in the flat row.
        processes: Processes that have the other pieces.
    """

    rows: list[Row]
    present: list[list[bool]]
    length: int
    starts: list[int]
    processes: Processes

    def collect(self, factors: Sequence[float], like: Sequence[Tensor]) -> Row:
        """Return Σ w_i g_i as whole tensors of the parameters' shapes; each process combines its piece."""
        offset = self.processes.rank * self.length
        own = _zeros(like, self.length)
        for index, start in enumerate(self.starts):
            total = combine([row[index] for row in self.rows[: len(factors)]], factors)
            if total is not None:
                first = max(start - offset, 0)
                own[first : first + len(total)] = total
        for row in self.rows:
            row.clear()
        whole = self.processes.gather(own, [self.length] * self.processes.size)
        return [
            whole[start : start + tensor.numel()].view(tensor.shape)
            if any(there[index] for there in self.present[: len(factors)])
            else None
            for index, (start, tensor) in enumerate(zip(self.starts, like, strict=True))
        ]


def scatter_rows(rows: list[Row], like: Sequence[Tensor], processes: Processes) -> Pieces:
    """Return this process's piece of the sums of all rows; the rows themselves are freed one after the other.

    Args:
        rows: Rows of this process's samples.
        like: Parameters.
        processes: At least two processes.
    """
    *starts, total = accumulate((tensor.numel() for tensor in like), initial=0)
    length = -(-total // processes.size)
    offset = processes.rank * length
    present = [[tensor is not None for tensor in row] for row in rows]
    found: list[Row] = []
    for row, there in zip(rows, present, strict=True):
        flat = _zeros(like, length * processes.size)
        for index, tensor in enumerate(row):
            if tensor is not None:
                flat[starts[index] : starts[index] + tensor.numel()] = tensor.detach().reshape(-1)
                row[index] = None
        own = processes.reduce_scatter(flat)
        found.append([])
        for start, tensor, known in zip(starts, like, there, strict=True):
            first, last = max(start - offset, 0), min(start + tensor.numel() - offset, length)
            found[-1].append(own[first:last] if known and first < last else None)
    return Pieces(found, present, length, starts, processes)


def _zeros(like: Sequence[Tensor], length: int) -> Tensor:
    """Zeros of the widest type among the parameters."""
    return like[0].new_zeros(length, dtype=reduce(torch.promote_types, (tensor.dtype for tensor in like)))
