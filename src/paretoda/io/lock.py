"""One process at a time in a directory: a lock that the system releases however its holder ends.

It is flock(2), so it never goes stale. Over NFS it holds from Linux 2.6.12 on, where the server offers locks; on a
network drive without them two machines can still meet in one directory.
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
        directory: of a run or a benchmark.
        job: what works there, for the sentence that the second one gets.
    """
    path = directory / NAME
    with attribute_errors(path):
        file = _opened(path, job)
    with file:
        with suppress(OSError):  # a full disk: only the sentence would be poorer
            file.truncate(0)
            file.write(f"process {os.getpid()} on {platform.node()}".encode())
        try:
            yield
        finally:
            path.unlink(missing_ok=True)  # still held: who opened it meanwhile finds another file at its name


def _opened(path: Path, job: str) -> FileIO:
    """The file at this name, locked; one that its holder removed between opening and locking is opened anew."""
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
    """Who holds it; it may not have written its name yet."""
    file.seek(0)
    return file.read(200).decode("utf-8", errors="replace").strip() or "another process"
