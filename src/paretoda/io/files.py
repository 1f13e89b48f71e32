"""Files that appear complete or not at all, and lines that are appended complete or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

_PART = ".part"
"""End of the name of a file that is being written; the name begins with a dot."""


@contextmanager
def attribute_errors(path: Path) -> Iterator[None]:
    """Inside, errors of the operating system name this file.

    A failed write names no file, and a failure with a temporary file names that one.
    """
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


@contextmanager
def atomic_file(path: Path, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Open a binary file for writing; it gets its name only when everything is on the disk.

    Args:
        path: Path of the file.
        sync: Whether to wait for the disk. Without, a file may be damaged after the machine has crashed: only for a
            cache, whose files are checked when they are read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "facts.txt"
        >>> with atomic_file(path) as file:
        ...     _ = file.write(b"all")
        ...     path.exists()
        False
        >>> path.read_bytes()
        b'all'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with attribute_errors(path):
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=_PART, dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                if sync:
                    sync_file(file)
            Path(name).chmod(0o644)
            Path(name).replace(path)
            if sync:
                _sync_folder(path.parent)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def sync_file(file: BinaryIO) -> None:
    """Return when everything that was written to the file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def find_unfinished(folder: Path) -> list[Path]:
    """Return files that a killed process was writing in this folder or below; no other process may be at work."""
    return [path for path in folder.rglob(f".*{_PART}") if path.is_file()]


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_file(path) as file:
        file.write(text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically, with sorted keys, so that equal values give equal bytes."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def parse_json(text: str | bytes) -> Any:
    """Return what a JSON text holds.

    Raises:
        ValueError: The text is no JSON, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def append_line(path: Path, line: str, *, sync: bool) -> None:
    """Append a line; where the disk is full, what was written of it is removed.

    Args:
        path: Path of the file.
        line: Line without its end.
        sync: Whether the line is on the disk when this returns, and not only safe from the end of this process.
    """
    with attribute_errors(path), path.open("ab", buffering=0) as file:
        start, data = file.tell(), f"{line}\n".encode()
        try:
            while data:
                data = data[file.write(data) :]
            if sync:
                os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                file.truncate(start)
            raise


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; it gets its name when it is complete, unless another process was faster."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as name:
        fresh = Path(name) / path.name
        fresh.mkdir()
        yield fresh
        with suppress(OSError):
            fresh.rename(path)
