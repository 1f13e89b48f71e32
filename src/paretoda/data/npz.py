""".npz files: every array is read when it is asked for, and only if it is what its header says."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from paretoda.data.errors import DataError
from paretoda.data.limits import check_unpacked

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class Npz:
    """The arrays of an open .npz by name.

    Args:
        path: an error calls it so.
        archive: opened for reading.
    """

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive
        self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}

    @property
    def files(self) -> list[str]:
        """Names of the arrays."""
        return list(self._members)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Read an array; a damaged one, one with pickled objects or one that would fill the memory is a DataError."""
        info = self._members[name]
        check_unpacked(info.file_size, info.compress_size, f"`{name}` of {self._path}")
        try:
            with self._archive.open(info) as stream:
                self._check_header(stream, info.file_size)
            with self._archive.open(info) as stream:
                array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
                return array
        except (DataError, MemoryError):
            raise
        except Exception as error:  # zip, zlib and NumPy's header raise whatever broken bytes lead them to
            raise _damaged(self._path, error) from error

    def _check_header(self, stream: IO[bytes], size: int) -> None:
        """The header must not promise more than the file holds: NumPy makes room for all of it at once."""
        read = _HEADERS.get(np.lib.format.read_magic(stream))
        if read is None:
            raise ValueError("an unknown version of the format")
        shape, _, dtype = read(stream)
        if dtype.hasobject:
            raise DataError(
                f"{self._path} contains pickled objects, which could run code; "
                "save plain arrays of numbers and text instead"
            )
        if min(shape, default=0) < 0 or prod(shape) * max(1, dtype.itemsize) > size:
            raise ValueError(f"its header promises the shape {shape}, which is not there")


@contextmanager
def reading_npz(path: Path) -> Iterator[Npz]:
    """The arrays of a file."""
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path} is damaged or is no .npz file; save it with np.savez(path, x=..., y=...)")
    try:
        archive = zipfile.ZipFile(path)
    except Exception as error:  # as above
        raise _damaged(path, error) from error
    with archive:
        yield Npz(path, archive)


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(f"{path} is damaged ({error}); save it again with np.savez")
