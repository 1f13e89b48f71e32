"""Files that appear whole or not at all, and lines that are appended whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

_PART = ".part"
"""How the name of a file that is being written ends; it begins with a dot."""


@contextmanager
def attribute_errors(path: Path) -> Iterator[None]:
    """An error of the operating system inside names this file: a failed write names none, a temporary file its own."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A binary file to write; it gets its name only when everything is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with attribute_errors(path):
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=_PART, dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                sync_file(file)
            Path(name).chmod(0o644)
            Path(name).replace(path)
            _sync_folder(path.parent)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def sync_file(file: BinaryIO) -> None:
    """Everything that was written is on the disk when this returns."""
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def find_unfinished(folder: Path) -> list[Path]:
    """Files that a killed process was writing here or below; nobody else may be at work."""
    return [path for path in folder.rglob(f".*{_PART}") if path.is_file()]


def write_text(path: Path, text: str) -> None:
    """Write a text file whole."""
    with atomic_file(path) as file:
        file.write(text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole, keys in order, so that equal values give equal bytes."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def parse_json(text: str | bytes) -> Any:
    """What a JSON text holds; whatever is wrong with it, depth included, is a ValueError."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def append_line(path: Path, line: str, *, sync: bool) -> None:
    """Append a line; where the disk is full, what was written of it is taken back.

    Args:
        path: of the file.
        line: without its end.
        sync: whether it is on the disk when this returns, not only safe from the end of this process.
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
    """An empty folder to fill; it gets its name only when everything is in it, unless another process was first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as name:
        fresh = Path(name) / path.name
        fresh.mkdir()
        yield fresh
        with suppress(OSError):
            fresh.rename(path)
