"""A lock that allows one process at a time in a directory; the system releases it however its holder ends.

It is flock(2), so it never becomes stale. Over NFS it works from Linux 2.6.12 on, where the server offers locks; on a
network drive without them two machines can still use one directory at the same time.
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
        file = _open_locked(path, job)
    with file:
        with suppress(OSError):  # with a full disk, only the error message lacks detail
            file.truncate(0)
            file.write(f"process {os.getpid()} on {platform.node()}".encode())
        try:
            yield
        finally:
            path.unlink(missing_ok=True)  # still locked: whoever has opened it finds another file at its name


def _open_locked(path: Path, job: str) -> FileIO:
    """Return the locked file; one that its holder removed between opening and locking is opened again."""
    while True:
        file = path.open("a+b", buffering=0)  # no buffer that closing would try to write to a full disk
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file, path):
                return file
        except OSError as error:
            holder = _holder(file)
            file.close()
            if error.errno not in _BUSY:
                raise
            raise RunError(
                f"{holder} is at work in {path.parent} ({job}); wait for it, or give another --out"
            ) from error
        file.close()


def _is_at(file: FileIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _holder(file: FileIO) -> str:
    """Return a description of the process that holds the lock, which may not have written its name yet."""
    file.seek(0)
    return file.read(200).decode("utf-8", errors="replace").strip() or "another process"
