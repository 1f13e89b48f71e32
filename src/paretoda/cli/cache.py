"""`paretoda cache`: what is kept for later commands, and how to remove it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json
from paretoda.errors import SettingsError
from paretoda.io.cache import LIMIT, CacheEntry, cache_folder, cache_limit, clear_cache, list_cache

_DAY = 86400.0


def cache(
    *,
    clear: Annotated[
        bool, typer.Option("--clear", help="remove what is kept; it is computed again when needed")
    ] = False,
    older_than: Annotated[
        float | None, typer.Option(min=0, metavar="DAYS", help="with --clear: only what was not used for so long")
    ] = None,
    json: Json = False,
) -> None:
    """Show or clear the cache: features of frozen backbones, and the file names of large folders."""
    with Console(as_json=json) as console:
        if older_than is not None and not clear:
            raise SettingsError("--older-than says what --clear removes; give both")
        removed = clear_cache((older_than or 0.0) * _DAY) if clear else 0
        entries = list_cache()
        if clear:
            console.result(f"{_format_size(removed)} were removed.")
        if entries:
            columns = {"kept": "left", "of": "left", "number": "right", "size": "right", "last used": "left"}
            console.table(columns, [_describe(entry) for entry in entries])
            console.result()
        size, limit = sum(entry.size for entry in entries), cache_limit()
        console.result(
            f"The cache in {cache_folder()} has {_format_size(size)} of at most {_format_size(limit)} (${LIMIT})."
        )
        console.finish(
            lambda: {
                "folder": str(cache_folder()),
                "bytes": size,
                "limit": limit,
                "removed": removed,
                "entries": [asdict(entry) for entry in entries],
            }
        )


def _describe(entry: CacheEntry) -> list[str]:
    used = datetime.fromtimestamp(entry.used, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    return [entry.kind, entry.name, str(entry.items), _format_size(entry.size), used]


def _format_size(size: float) -> str:
    """Return a number of bytes in words.

    >>> _format_size(1234567)
    '1.2 MB'
    """
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
