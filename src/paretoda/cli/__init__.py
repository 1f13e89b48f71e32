"""The command line: `paretoda --help` needs neither torch nor SciPy; each command imports what it uses."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from paretoda.cli.environment import prepare_environment


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave the process with its exit code.

    Args:
        arguments: Arguments without the name of the program; those of the process by default.
    """
    prepare_environment()
    given = [*(sys.argv[1:] if arguments is None else arguments)]  # `list` is a module of this package
    try:
        from paretoda.cli.app import app  # noqa: PLC0415  (Ctrl-C during these imports is handled below)
        from paretoda.cli.errors import run_app  # noqa: PLC0415

        code = run_app(app, given)
    except KeyboardInterrupt:  # before the command started, or after it ended
        print("paretoda: stopped", file=sys.stderr)
        code = 130
    sys.exit(code)
