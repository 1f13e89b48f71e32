"""Damaged files, one after the other: each is read, or refused in one sentence; nothing else may come out.

    python -m hostile.campaign 1000 [READER…]      (in tests/, with the source on PYTHONPATH)

prints how many cases of each reader were read and refused. It runs under a limit of memory and of time for each case.
"""

from __future__ import annotations

import hashlib
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from hostile.readers import Reader, fresh, make_readers

from paretoda.cli.errors import explain

SECONDS, WAITED = 30, 600
"""Of work and of waiting in one case: more than any takes on a busy machine; less than for ever."""
ROOM = 2**30
"""Bytes that a case may take on top of what the program has."""


class HangError(BaseException):
    """A case took longer than `SECONDS`; no `except Exception` catches it."""


@contextmanager
def limits() -> Iterator[None]:
    """Inside, an allocation of more than `ROOM` fails."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def deadline() -> Iterator[None]:
    """Inside, what hangs is stopped."""

    def stop(*_: Any) -> None:
        raise HangError

    clocks = ((signal.ITIMER_PROF, signal.SIGPROF, SECONDS), (signal.ITIMER_REAL, signal.SIGALRM, WAITED))
    before = [signal.signal(number, stop) for _, number, _ in clocks]
    for clock, _, seconds in clocks:
        signal.setitimer(clock, seconds)
    try:
        yield
    finally:
        for (clock, number, _), handler in zip(clocks, before, strict=True):
            signal.setitimer(clock, 0)
            signal.signal(number, handler)


def case(name: str, reader: Reader, number: int) -> tuple[str, bytes]:
    """The file's name and damaged content; the same number gives the same case."""
    rng = Random(int.from_bytes(hashlib.sha256(f"{name}/{number}".encode()).digest()[:8], "little"))
    file = rng.choice(list(reader.files))
    return file, rng.choice(reader.mutations)(reader.files[file], rng)


def outcome(reader: Reader, path: Path) -> str:
    """ "read", "refused", or what came out instead."""
    with warnings.catch_warnings(), deadline():
        warnings.simplefilter("ignore")
        try:
            reader.read(path)
        except HangError:
            return "a hang"
        except MemoryError:
            return f"MemoryError\n{traceback.format_exc()}"
        except Exception as error:
            text, code = explain(error)
            return "refused" if code == 2 and text.strip() else f"{error!r}\n{traceback.format_exc()}"
    return "read"


def campaign(name: str, reader: Reader, cases: Iterable[int], place: Path) -> tuple[dict[str, int], list[str]]:
    """How many cases were read and refused, and what went wrong."""
    counts, wrong = {"read": 0, "refused": 0}, []
    fresh(reader, place)
    with limits():
        for number in cases:
            file, content = case(name, reader, number)
            (place / file).parent.mkdir(exist_ok=True)
            (place / file).write_bytes(content)
            found = outcome(reader, place / file)
            if found in counts:
                counts[found] += 1
            else:
                wrong.append(f"{name}, case {number}: {found}")
            with suppress(OSError):
                (place / file).write_bytes(reader.files[file])
    return counts, wrong


def main(arguments: list[str]) -> int:
    """Run them all, or those that are named."""
    count, names = int(arguments[0]), arguments[1:]
    total, failures = 0, []
    with tempfile.TemporaryDirectory() as folder:
        readers = make_readers(Path(folder))
        for name in names or readers:
            counts, wrong = campaign(name, readers[name], range(count), Path(folder) / "case")
            total += count
            failures += wrong
            print(f"{name:24} {count:7} cases: {counts['read']} read, {counts['refused']} refused, {len(wrong)} wrong")
            for text in wrong[:3]:
                print(text)
    print(f"{total} cases in all, {len(failures)} wrong")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
