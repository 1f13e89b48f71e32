"""Errors that a user can correct become one sentence on stderr and exit code 2; Ctrl-C gives 130.

If torchrun has started several processes, one of them reports: the first, and another one only if the first cannot.
"""

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

from paretoda.cli.console import escape_controls, shorten

EXPECTED = (
    "paretoda.errors.DataError",
    "paretoda.errors.SettingsError",
    "paretoda.errors.RunError",
    "paretoda.distributed.process_group.OtherProcessError",
    "paretoda.training.checkpoint.CheckpointError",
    "paretoda.errors.WeightsError",
    "paretoda.gradients.report.NonFiniteError",
)
"""Errors that a user can correct, by name, because importing them would import torch."""

INTERRUPTED = "paretoda.run.interrupt.InterruptedRunError"
_LOST = "paretoda.distributed.collectives.LostProcessError"
_MEMORY = ("builtins.MemoryError", "torch.OutOfMemoryError")
_NO_ROOM = ("can't allocate memory", "Storage size calculation overflowed")  # torch's, in a plain RuntimeError
_CONTINUE = "then continue: `paretoda adapt` with --resume, other commands unchanged"
_FILES = (
    ((errno.ENOSPC, errno.EDQUOT), "the disk is full", f"free some space (or inodes), {_CONTINUE}"),
    ((errno.EFBIG,), "a file would be larger than is allowed", f"raise the limit (ulimit -f), {_CONTINUE}"),
    ((errno.EROFS,), "the disk is read-only", "choose another place"),
    ((errno.EACCES, errno.EPERM), "permission denied", "choose another place or change its permissions"),
    ((errno.ENOTDIR, errno.EEXIST), "a part of the path is a file", "choose another place"),
    ((errno.EIO, errno.ESTALE), "the disk or network drive failed", f"check it, {_CONTINUE}"),
)
"""Error numbers of the system, what they mean, and what to do."""
_PATIENCE = 10.0
"""Seconds that the first process has to report an error that occurs before the process group exists."""

# typer brings its own copy of click along; these are its classes, by their public child.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def run_app(app: Callable[..., Any], arguments: Sequence[str]) -> int:
    """Run the application, report any error in one sentence, and return the exit code.

    Args:
        app: The typer application.
        arguments: Arguments of the command line; `--debug` among them, or PARETODA_DEBUG=1, lets tracebacks through.
    """
    debug = "--debug" in arguments or os.environ.get("PARETODA_DEBUG", "0") not in ("", "0")
    given = [argument for argument in arguments if argument != "--debug"]
    try:
        with _sigterm_as_interrupt():
            result = app(given, prog_name="paretoda", standalone_mode=False)
    except _UsageError as error:
        return _report(error, _explain_usage(error), 2)
    except (typer.Abort, KeyboardInterrupt) as stop:
        return _report(stop, "stopped", 130)
    except BrokenPipeError:  # `paretoda predict … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            raise
        return _report(error, *explain(error))
    return result if isinstance(result, int) else 0


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C inside the block, so that a run that a cluster ends stops as cleanly."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def explain(error: Exception) -> tuple[str, int]:
    """Return one sentence about the error, and the exit code."""
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    if INTERRUPTED in names:
        return str(error), 130
    if _LOST in names:
        return str(error), 1
    if names & set(EXPECTED):
        return str(error), 2
    if names & set(_MEMORY) or any(words in str(error) for words in _NO_ROOM):
        return "the memory is full; use --accumulate 2, lower --batch-size or --image-size, or close other programs", 2
    if isinstance(error, OSError):
        return _explain_os_error(error), 2
    where = "set PARETODA_DEBUG=1 to see where, and please report it"
    return f"this should not have happened ({type(error).__name__}: {error}); {where}", 1


def _explain_os_error(error: OSError) -> str:
    where = f" at {error.filename}" if error.filename else ""
    for numbers, what, advice in _FILES:
        if error.errno in numbers:
            return f"{what}{where}; {advice}"
    return f"{error.strerror}{where}" if error.strerror else str(error)


def _explain_usage(error: Exception) -> str:
    message = str(getattr(error, "format_message", error.__str__)()).replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "paretoda"
    return f"{message.rstrip('.')}; `{command} --help` shows what can be given"


def _report(error: BaseException, text: str, code: int) -> int:
    """Print the sentence, if it is this process that reports, and return the exit code."""
    if _reports(error):
        print(f"paretoda: {shorten(escape_controls(' '.join(text.split())))}", file=sys.stderr, flush=True)
        group = sys.modules.get("paretoda.distributed.process_group")
        if group is not None:
            group.mark_as_reported()  # the other processes may end
    return code


def _reports(error: BaseException) -> bool:
    """Return whether this process reports its error; if not, wait until the first process had the time to do so."""
    if not rank():
        return True
    lost = getattr(error, "speaks", None)
    if lost is not None:
        return bool(lost)
    group = sys.modules.get("paretoda.distributed.process_group")
    if group is not None and group.is_joined():
        group.wait_for_report()
        return False
    # torchrun ends all processes once the first one has left.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    return signal.sigtimedwait({signal.SIGTERM}, _PATIENCE) is None


def rank() -> int:
    """Return the rank of this process; 0 if it is the only one."""
    return int(os.environ.get("RANK", "0")) if is_distributed() else 0


def is_distributed() -> bool:
    """Return whether torchrun has started more than one process."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1
