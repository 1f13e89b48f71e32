"""Locks that allow one process at a time; the system releases them however their holder ends.

They are flock(2), so they never become stale. Over NFS they work from Linux 2.6.12 on, where the server offers locks;
on a network drive without them two machines can still use one directory at the same time.
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from paretoda.errors import RunError
from paretoda.io.files import attribute_errors

NAME = ".lock"
_BUSY = (errno.EAGAIN, errno.EACCES)


@contextmanager
def lock_directory(directory: Path, job: str) -> Iterator[None]:
    """Inside, no other process works in the directory, which must exist.

    Args:
        directory: Directory of a run or a benchmark.
        job: What works there, for the error message of the second process.

    Raises:
        RunError: Another process holds the lock.
    """
    path = directory / NAME
    with attribute_errors(path):
        file = _open_locked(path)
    if file is None:
        raise RunError(f"{_holder(path)} is at work in {directory} ({job}); wait for it, or give another --out")
    with file:
        with suppress(OSError):  # with a full disk, only the error message lacks detail
            file.truncate(0)
            file.write(f"process {os.getpid()} on {platform.node()}".encode())
        try:
            yield
        finally:
            path.unlink(missing_ok=True)  # still locked: whoever has opened it finds another file at its name


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Yield whether nobody else holds the lock; if so, nobody else gets it inside.

    Args:
        path: Path of the lock's file, in a directory that exists.
    """
    file = _open_locked(path)
    if file is None:
        yield False
        return
    with file:
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)


def _open_locked(path: Path) -> FileIO | None:
    """Return the locked file, None if it is locked already; one that its holder removed meanwhile is opened again."""
    while True:
        file = path.open("a+b", buffering=0)  # no buffer that closing would try to write to a full disk
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file, path):
                return file
        except OSError as error:
            file.close()
            if error.errno not in _BUSY:
                raise
            return None
        file.close()


def _is_at(file: FileIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    """Return a description of the process that holds the lock, which may not have written its name yet."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        return file.read(200).decode("utf-8", errors="replace").strip() or "another process"
    return "another process"
