"""The command line: `paretoda --help` needs neither torch nor SciPy, commands import what they use."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave the process with its exit code.

    Args:
        arguments: without the program's name; those of the process by default.
    """
    given = [*(sys.argv[1:] if arguments is None else arguments)]
    try:
        from paretoda.cli.app import app  # noqa: PLC0415  (typer takes a tenth of a second)
        from paretoda.cli.errors import exit_code  # noqa: PLC0415

        code = exit_code(app, given)
    except KeyboardInterrupt:  # before the command began, or when it had ended
        print("paretoda: stopped", file=sys.stderr)
        code = 130
    sys.exit(code)
