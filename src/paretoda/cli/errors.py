"""Errors that a user can mend become one sentence on stderr and exit code 2; Ctrl-C gives 130."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from paretoda.cli.console import shortened, shown
from paretoda.cli.several import LOST, has_spoken, speaks

EXPECTED = (
    "paretoda.errors.DataError",
    "paretoda.errors.SettingsError",
    "paretoda.errors.RunError",
    "paretoda.distributed.process_group.OtherProcessError",
    "paretoda.training.checkpoint.CheckpointError",
    "paretoda.errors.WeightsError",
    "paretoda.gradients.report.NonFiniteError",
)
"""By name, because importing them would import torch."""

INTERRUPTED = "paretoda.run.interrupt.InterruptedRunError"
_MEMORY = ("builtins.MemoryError", "torch.OutOfMemoryError")
_NO_ROOM = ("can't allocate memory", "Storage size calculation overflowed")  # torch's, in a plain RuntimeError
_GO_ON = "then go on: `paretoda adapt` with --resume, other commands as they were written"
_FILES = (
    ((errno.ENOSPC, errno.EDQUOT), "the disk is full", f"free some space (or inodes), {_GO_ON}"),
    ((errno.EFBIG,), "a file would be larger than is allowed", f"raise the limit (ulimit -f), {_GO_ON}"),
    ((errno.EROFS,), "the disk may only be read", "choose another place"),
    ((errno.EACCES, errno.EPERM), "permission denied", "choose another place or change its permissions"),
    ((errno.ENOTDIR, errno.EEXIST), "a part of the path is a file", "choose another place"),
    ((errno.EIO, errno.ESTALE), "the disk or network drive failed", f"check it, {_GO_ON}"),
)
"""What the system says, in our words, and what to do."""

# typer brings its own copy of click along; these are its classes, by their public child.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def exit_code(app: Callable[..., Any], arguments: Sequence[str]) -> int:
    """Run the application; whatever goes wrong is told in one sentence.

    Args:
        app: the typer application.
        arguments: of the command line; `--debug` among them, or PARETODA_DEBUG=1, lets tracebacks through.
    """
    debug = "--debug" in arguments or os.environ.get("PARETODA_DEBUG", "0") not in ("", "0")
    given = [argument for argument in arguments if argument != "--debug"]
    try:
        with _ended_as_by_ctrl_c():
            result = app(given, prog_name="paretoda", standalone_mode=False)
    except _UsageError as error:
        return _tell(error, _usage(error), 2)
    except (typer.Abort, KeyboardInterrupt) as stop:
        return _tell(stop, "stopped", 130)
    except BrokenPipeError:  # `paretoda predict … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            raise
        return _tell(error, *sentence(error))
    return result if isinstance(result, int) else 0


@contextmanager
def _ended_as_by_ctrl_c() -> Iterator[None]:
    """Inside, SIGTERM is what Ctrl-C is: a cluster that wants its machine back ends no run worse than its user."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def sentence(error: Exception) -> tuple[str, int]:
    """What to tell, and the exit code."""
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    if INTERRUPTED in names:
        return str(error), 130
    if LOST in names:
        return str(error), 1
    if names & set(EXPECTED):
        return str(error), 2
    if names & set(_MEMORY) or any(words in str(error) for words in _NO_ROOM):
        return "the memory is full; take --accumulate 2 or lower --batch-size or --image-size, or close others", 2
    if isinstance(error, OSError):
        return _about_files(error), 2
    where = "set PARETODA_DEBUG=1 to see where, and please report it"
    return f"this should not have happened ({type(error).__name__}: {error}); {where}", 1


def _about_files(error: OSError) -> str:
    where = f" at {error.filename}" if error.filename else ""
    for numbers, what, advice in _FILES:
        if error.errno in numbers:
            return f"{what}{where}; {advice}"
    return f"{error.strerror}{where}" if error.strerror else str(error)


def _usage(error: Exception) -> str:
    message = str(getattr(error, "format_message", error.__str__)()).replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "paretoda"
    return f"{message.rstrip('.')}; `{command} --help` shows what can be given"


def _tell(error: BaseException, text: str, code: int) -> int:
    if speaks(error):
        print(f"paretoda: {shortened(shown(' '.join(text.split())))}", file=sys.stderr, flush=True)
        has_spoken()
    return code
