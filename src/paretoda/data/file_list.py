"""Many files below one folder in little memory: their names lie one after the other in a single buffer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paretoda.data.samples import Index

_END = b"\0"
"""Behind each name: the one character that no name of a file has."""


@dataclass(frozen=True, eq=False)
class FileList:
    """Files in a fixed order: a million names take as many bytes as they have letters, and five million more.

    Args:
        folder: where the names start.
        joined: all names as the file system spells them, a zero byte behind each.
    """

    folder: Path
    joined: bytes

    @staticmethod
    def of(folder: Path, names: Iterable[str]) -> FileList:
        """The files of these names, relative to the folder or absolute."""
        return FileList(folder, b"".join(os.fsencode(name) + _END for name in names))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: int) -> Path:
        return self.folder / self.name(place)

    def __iter__(self) -> Iterator[Path]:
        return (self.folder / name for name in self.names())

    def name(self, place: int) -> str:
        """The name at a position."""
        place = range(len(self))[place]
        start = int(self._ends[place - 1]) + 1 if place else 0
        return os.fsdecode(self.joined[start : int(self._ends[place])])

    def names(self) -> list[str]:
        """All names."""
        return [os.fsdecode(name) for name in self.joined.split(_END)[:-1]]

    def kept(self, keep: Index) -> FileList:
        """The files at these positions, in this order."""
        return FileList.of(self.folder, (self.name(int(place)) for place in keep))

    @cached_property
    def _ends(self) -> NDArray[Any]:
        ends = np.flatnonzero(np.frombuffer(self.joined, np.uint8) == 0)
        return ends.astype(np.uint32) if len(self.joined) < 2**32 else ends
