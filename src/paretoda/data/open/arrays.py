"""Arrays as samples: NumPy, torch, pandas and .npz; features (n, d) or images (n, h, w[, c])."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray

from paretoda.data.samples import Index, Kind, Labels, array_digests, labels_from_integers, number_positions
from paretoda.errors import DataError
from paretoda.io.limits import check_unpacked

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class Npz:
    """The arrays of an open .npz file by name.

    Args:
        path: Path of the file, for error messages.
        archive: The file, opened for reading.
    """

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive
        self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}

    @property
    def files(self) -> list[str]:
        """Names of the arrays."""
        return list(self._members)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Read an array.

        Raises:
            DataError: The array is damaged, holds pickled objects or would fill the memory.
        """
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
        except Exception as error:  # broken bytes make zip, zlib and NumPy raise any kind of error
            raise _damaged_error(self._path, error) from error

    def _check_header(self, stream: IO[bytes], size: int) -> None:
        """Check that the header promises no more than the file holds, because NumPy allocates all of it at once."""
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
def open_npz_file(path: Path) -> Iterator[Npz]:
    """Open an .npz file for reading inside a `with` block.

    Raises:
        DataError: The file is damaged or no .npz file.
    """
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path} is damaged or is no .npz file; save it with np.savez(path, x=..., y=...)")
    try:
        archive = zipfile.ZipFile(path)
    except Exception as error:  # as above
        raise _damaged_error(path, error) from error
    with archive:
        yield Npz(path, archive)


def _damaged_error(path: Path, error: Exception) -> DataError:
    return DataError(f"{path} is damaged ({error}); save it again with np.savez")


@dataclass(frozen=True, eq=False)
class ArraySamples:
    """Samples in memory.

    Args:
        x: float32 features (n, d), or uint8 images (n, h, w) or (n, h, w, 3).
        labels: Labels; None where the samples were opened without labels.
        notes: Sentences for the user.
    """

    x: NDArray[Any]
    labels: Labels | None = None
    notes: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """Kind "features" for two dimensions, otherwise "images"."""
        return "features" if self.x.ndim == 2 else "images"

    def __len__(self) -> int:
        return len(self.x)

    def read(self, index: Index, at_least: int = 0) -> NDArray[Any]:  # noqa: ARG002
        """Return these rows."""
        return self.x[np.asarray(index, dtype=np.int64)]

    def names(self, index: Index) -> list[str]:
        """Return row numbers from 0."""
        return number_positions(index)

    def digests(self, index: Index) -> list[str]:
        """Return hashes of the rows' shape and bytes."""
        return array_digests(self.x, index)

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the one shape that all rows have."""
        return [(*self.x.shape[1:], 1) if self.x.ndim == 3 else self.x.shape[1:]]


def make_array_samples(x: Any, y: Any = None, classes: Any = None, *, origin: str = "the data") -> ArraySamples:
    """Make samples of arrays of any library.

    Args:
        x: Features or images.
        y: Labels; None for samples without labels.
        classes: Names of the classes, or None.
        origin: Name of the data in error messages.

    Raises:
        DataError: The arrays are no features or images with one label each.
    """
    array = to_canonical(to_array(x, origin), origin)
    if y is None:
        return ArraySamples(array)
    labels = labels_from_integers(to_array(y, origin), None if classes is None else np.asarray(classes), origin)
    if len(labels.values) != len(array):
        raise DataError(f"{origin} has {len(array)} samples but {len(labels.values)} labels; give one label per sample")
    return ArraySamples(array, labels)


def open_npz_samples(path: Path, *, labelled: bool) -> ArraySamples:
    """Open the `x` of a file; its `y` and `classes` are read only where labels are wanted."""
    with open_npz_file(path) as file:
        return samples_from_npz(file, path, labelled=labelled)


def samples_from_npz(file: Npz, path: Path, *, labelled: bool) -> ArraySamples:
    """Return the samples in an .npz file that is open."""
    if "x" not in file.files:
        raise DataError(f"{path} has no array `x` (it has {', '.join(file.files) or 'none'}); save the samples as `x`")
    if not labelled:
        return make_array_samples(file["x"], origin=str(path))
    if "y" not in file.files:
        raise DataError(f"{path} has no labels; save one integer per sample as `y`")
    classes = file["classes"] if "classes" in file.files else None
    return make_array_samples(file["x"], file["y"], classes, origin=str(path))


def to_array(x: Any, origin: str) -> NDArray[Any]:
    """Return a NumPy array of numbers, from NumPy, torch, pandas or nested lists.

    Raises:
        DataError: The samples have different shapes or hold objects.
    """
    if isinstance(x, torch.Tensor):
        x = x.detach().cpu()
        x = x.float().numpy() if x.dtype == torch.bfloat16 else x.numpy()
    elif hasattr(x, "to_numpy"):
        x = x.to_numpy()
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise DataError(f"{origin} is no array ({error}); all samples must have the same shape") from error
    if array.dtype.kind == "O":
        raise DataError(f"{origin} holds objects instead of numbers; convert every column to numbers")
    return array


def to_canonical(x: NDArray[Any], origin: str) -> NDArray[Any]:
    """Return float32 features (n, d), or uint8 images (n, h, w) or (n, h, w, 3).

    Raises:
        DataError: The array has no samples, another shape, or values that are no numbers or pixels.
    """
    if x.dtype.kind not in "biuf":
        raise DataError(f"{origin} holds {x.dtype} instead of numbers; convert it to numbers")
    if x.ndim not in (2, 3, 4):
        raise DataError(f"{origin} has the shape {x.shape}; give features (n, d) or images (n, h, w) or (n, h, w, 3)")
    if len(x) == 0:
        raise DataError(f"{origin} has no samples; give at least one")
    if x.size == 0:
        raise DataError(f"{origin} has samples of size zero, shape {x.shape}; give features or pixels")
    if x.ndim == 2:
        with np.errstate(over="ignore"):  # too large values become infinite, and are reported as such
            return np.ascontiguousarray(x, dtype=np.float32)
    return _to_images(x, origin)


def _to_images(x: NDArray[Any], origin: str) -> NDArray[np.uint8]:
    if x.ndim == 4 and x.shape[3] not in (1, 3, 4):
        if x.shape[1] not in (1, 3, 4):
            raise DataError(f"{origin} has images of shape {x.shape[1:]}; give 1, 3 or 4 channels")
        x = np.moveaxis(x, 1, 3)
    if x.dtype != np.uint8:
        top = 1 if x.dtype.kind == "f" else 255
        if not (x.min() >= 0 and x.max() <= top):  # false for NaN, too
            raise DataError(f"{origin} has {x.dtype} images beyond 0..{top}; give uint8 pixels, not normalised ones")
        x = np.rint(x * (255 // top)).astype(np.uint8)
    if x.ndim == 4 and x.shape[3] == 1:
        x = x[..., 0]
    if x.ndim == 4 and x.shape[3] == 4:
        alpha = x[..., 3:].astype(np.float32) / 255
        x = np.rint(x[..., :3] * alpha + 255 * (1 - alpha)).astype(np.uint8)
    return np.ascontiguousarray(x, dtype=np.uint8)


def check_finite(x: NDArray[np.float32], origin: str) -> None:
    """Raise a `DataError` that says where a feature is NaN or infinite."""
    bad = ~np.isfinite(x)
    if bad.any():
        row, column = (int(place) for place in np.argwhere(bad)[0])
        what = "NaN" if np.isnan(x[row, column]) else "infinite, or too large for float32"
        rows = int(bad.any(axis=1).sum())
        raise DataError(
            f"{origin}: the feature in row {row}, column {column} is {what} "
            f"(rows with such values: {rows} of {len(x)}); fill in or remove them"
        )
