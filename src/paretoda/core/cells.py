"""Tables as CSV text: quoted where it must be, and without cells that a spreadsheet would run as formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MARK = "'"


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """The rows as CSV, one line each; a text that would be a formula begins with an apostrophe."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def original(cell: str) -> str:
    """The text that became this cell."""
    return cell[1:] if cell.startswith(_MARK) and _would_run(cell[1:]) else cell


def _cell(value: object) -> object:
    return f"{_MARK}{value}" if isinstance(value, str) and _would_run(value) else value


def _would_run(text: str) -> bool:
    """Whether a spreadsheet takes it for a formula; marked texts count, so that marking can be undone."""
    bare = text.lstrip(_MARK)
    return bare.startswith(_FORMULA) and not _is_number(bare)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return not text.startswith(("\t", "\r"))
