"""The command line's finished run is reported, too."""

from cli.conftest import data, finished, inside

__all__ = ["data", "finished", "inside"]
