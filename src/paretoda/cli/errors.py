"""Errors that a user can mend become one sentence on stderr and exit code 2; Ctrl-C gives 130."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

EXPECTED = (
    "paretoda.data.errors.DataError",
    "paretoda.job.errors.SettingsError",
    "paretoda.job.directory.RunError",
    "paretoda.training.checkpoint.CheckpointError",
    "paretoda.models.weights.WeightsError",
    "paretoda.gradients.report.NonFiniteError",
)
"""By name, because importing them would import torch."""

INTERRUPTED = "paretoda.job.interrupt.InterruptedRunError"
_MEMORY = ("builtins.MemoryError", "torch.OutOfMemoryError")

# typer brings its own copy of click along; these are its classes, by their public child.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def exit_code(app: Callable[..., Any], arguments: Sequence[str]) -> int:
    """Run the application; whatever goes wrong is told in one sentence.

    Args:
        app: the typer application.
        arguments: of the command line; `--debug` among them, or PARETODA_DEBUG=1, lets tracebacks through.
    """
    debug = "--debug" in arguments or os.environ.get("PARETODA_DEBUG", "0") not in ("", "0")
    try:
        result = app(
            [argument for argument in arguments if argument != "--debug"], prog_name="paretoda", standalone_mode=False
        )
    except _UsageError as error:
        return _tell(_usage(error), 2)
    except (typer.Abort, KeyboardInterrupt):
        return _tell("stopped", 130)
    except BrokenPipeError:  # `paretoda predict … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            raise
        return _tell(*sentence(error))
    return result if isinstance(result, int) else 0


def sentence(error: Exception) -> tuple[str, int]:
    """What to tell, and the exit code."""
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    if INTERRUPTED in names:
        return str(error), 130
    if names & set(EXPECTED):
        return str(error), 2
    if names & set(_MEMORY):
        return "the memory is full; take --accumulate 2 or lower --batch-size or --image-size, or close others", 2
    if isinstance(error, OSError):
        return _about_files(error), 2
    where = "set PARETODA_DEBUG=1 to see where, and please report it"
    return f"this should not have happened ({type(error).__name__}: {error}); {where}", 1


def _about_files(error: OSError) -> str:
    where = f" at {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full{where}; free some space, then go on with --resume or begin again with --overwrite"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"permission denied{where}; choose another place or change its permissions"
    return f"{error.strerror}{where}" if error.strerror else str(error)


def _usage(error: Exception) -> str:
    message = str(getattr(error, "format_message", error.__str__)()).replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "paretoda"
    return f"{message.rstrip('.')}; `{command} --help` shows what can be given"


def _tell(text: str, code: int) -> int:
    print(f"paretoda: {' '.join(text.split())}", file=sys.stderr)
    return code
