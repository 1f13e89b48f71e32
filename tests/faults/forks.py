"""A process that has imported everything forks a child for each command: real processes without seconds of imports.

It is told one JSON line for each child on stdin and answers with one. What goes wrong in the child is part of the
order: a signal at the n-th call of any function or the n-th change of a file, a clock that jumps, a file that is moved.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

_CHANGES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate", "shutil.rmtree")


class Forks:
    """The process, seen from a test; `wrapper` is a command that starts it."""

    def __init__(self, *wrapper: str) -> None:
        command = [*wrapper, sys.executable, str(Path(__file__))]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
        self._process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, **order: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order, default=str) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def command(self, *arguments: object, **faults: Any) -> "Answer":
        """`paretoda` with these arguments."""
        return Answer(**self.ask(command=[str(a) for a in arguments], **faults))

    def listing(self, folder: Path) -> dict[str, str]:
        """Hashes of all files below the folder."""
        found: dict[str, str] = self.ask(listing=folder)
        return found

    def close(self) -> None:
        self._process.communicate("", timeout=60)


class Answer:
    """How a child ended: its exit code (negative: a signal's number), what it said, how much it did."""

    def __init__(self, code: int, err: str, calls: int, changes: int) -> None:
        self.code, self.err, self.calls, self.changes = code, err, calls, changes

    @property
    def sentence(self) -> str:
        """The last line of an error, which is its only one but for progress and warnings."""
        assert "Traceback" not in self.err, self.err
        last = self.err.splitlines()[-1]
        assert last.startswith("paretoda: "), self.err
        assert sum(line.startswith("paretoda: ") for line in self.err.splitlines()) == 1, self.err
        return last


class _Faults:
    """Counts what the child does, and does to it what was ordered."""

    def __init__(self, order: dict[str, Any], watched: str) -> None:
        self.calls = self.changes = 0
        self._watched = watched
        self._at_call = {int(n): signum for n, signum in order.get("at_call", [])}
        self._at_change = {int(n): signum for n, signum in order.get("at_change", [])}
        self._counting = bool(order.get("count")) or bool(self._at_call)

    def start(self) -> None:
        sys.addaudithook(self._audit)
        if self._counting:
            sys.setprofile(self._profile)

    def _profile(self, _frame: object, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            self.calls += 1
            if self.calls in self._at_call:
                os.kill(os.getpid(), self._at_call[self.calls])

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if event not in _CHANGES or not str(arguments[0]).startswith(self._watched):
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        self.changes += 1
        if self.changes in self._at_change:
            os.kill(os.getpid(), self._at_change[self.changes])


def _jumping_clock(seed: int) -> None:
    """time.time goes back and forth by up to ten years at every call."""
    chance, now = random.Random(seed), time.time
    time.time = lambda: now() + chance.uniform(-3e8, 3e8)
    time.time_ns = lambda: int(time.time() * 1e9)


def _no_capabilities() -> None:
    """Root without its powers: permissions count."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capset(header, nothing) == 0, os.strerror(ctypes.get_errno())


def _spoil_after(order: dict[str, Any]) -> None:
    """After so many lines of metrics, run a shell command."""
    from paretoda.run.directory.directory import RunDirectory

    plain, lines = RunDirectory.add_metrics, [0]

    def counted(self: RunDirectory, taken: int, report: Any) -> None:
        plain(self, taken, report)
        lines[0] += 1
        if lines[0] == order["after_lines"]:
            subprocess.run(order["shell"], shell=True, check=True)

    RunDirectory.add_metrics = counted  # type: ignore[method-assign]


def _child(order: dict[str, Any], words: Path) -> None:
    descriptor = os.open(words, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    from paretoda.cli import main

    arguments = order["command"]
    faults = _Faults(order, arguments[arguments.index("--out") + 1] if "--out" in arguments else "\0")
    if order.get("plain_user"):
        _no_capabilities()
    if "clock" in order:
        _jumping_clock(order["clock"])
    if "after_lines" in order:
        _spoil_after(order)
    code = 1
    try:
        faults.start()
        main(arguments)
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.setprofile(None)
        sys.stderr.flush()
        words.with_suffix(".counts").write_text(json.dumps([faults.calls, faults.changes]))
        os._exit(code)


def _run(order: dict[str, Any], words: Path) -> dict[str, Any]:
    words.with_suffix(".counts").write_text("[0, 0]")
    child = os.fork()
    if child == 0:
        _child(order, words)
    _, status = os.waitpid(child, 0)
    calls, changes = json.loads(words.with_suffix(".counts").read_text())
    err = words.read_text(errors="replace")
    return {"code": os.waitstatus_to_exitcode(status), "err": err, "calls": calls, "changes": changes}


def _digest(path: Path) -> str:
    """Of a file's bytes; of a checkpoint's contents, since what was read before is pickled otherwise."""
    return hashlib.sha256(_plain(path).encode() if path.suffix == ".pt" else path.read_bytes()).hexdigest()


def _plain(value: Any) -> str:
    import torch

    if isinstance(value, Path):
        value = torch.load(value, weights_only=True)
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)} {value.numpy().tobytes().hex()}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_plain(part)}' for key, part in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_plain, value))}]"
    return repr(value)


def _answer(order: dict[str, Any], words: Path) -> Any:
    if "listing" in order:
        folder = Path(order["listing"])
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): _digest(path) for path in files}
    if "shell" in order and "command" not in order:
        return subprocess.run(order["shell"], shell=True, check=False).returncode
    return _run(order, words)


def _warm_up(folder: Path) -> None:
    """A run in this process, so that no child has to import anything."""
    import numpy as np

    from paretoda.cli import main

    rng = np.random.default_rng(0)
    np.savez(folder / "s.npz", x=rng.normal(size=(40, 4)), y=np.arange(40) % 2)
    np.savez(folder / "t.npz", x=rng.normal(size=(40, 4)))
    given = ("--source", folder / "s.npz", "--target", folder / "t.npz", "--out", folder / "run", "--steps", 2)
    with suppress(SystemExit):
        main(["adapt", *map(str, given), "--bottleneck", "8", "--no-reference", "-q"])


def serve() -> None:
    """Read orders until stdin ends."""
    import torch

    torch.set_num_threads(1)  # threads of OpenMP would not survive a fork
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        _warm_up(Path(folder))
        for line in sys.stdin:
            print(json.dumps(_answer(json.loads(line), Path(folder) / "words")), flush=True)


if __name__ == "__main__":
    serve()
