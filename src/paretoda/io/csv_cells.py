"""Tables as CSV text: quoted where necessary, and without cells that a spreadsheet would run as formulas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MARK = "'"
_QUOTED = frozenset(',"\r\n')


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    r"""Return the rows as CSV, one line each; a text that would be a formula begins with an apostrophe.

    csv.writer is not used because it leaves a carriage return unquoted where lines end without one.

    >>> csv_text([["name", "value"], ["=A1", 2]])
    "name,value\n'=A1,2\n"
    """
    return "".join(f"{_line(row)}\n" for row in rows)


def _line(row: Sequence[object]) -> str:
    return ",".join(map(_cell, row)) or '""'  # an empty line would not be a row


def unescape_cell(cell: str) -> str:
    """Return the text that became this cell."""
    return cell[1:] if cell.startswith(_MARK) and _would_run(cell[1:]) else cell


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    if isinstance(value, str) and _would_run(value):
        text = f"{_MARK}{value}"
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if _QUOTED.intersection(text) else text


def _would_run(text: str) -> bool:
    """Return whether a spreadsheet takes a text for a formula; marked texts count, so that marking can be undone."""
    bare = text.lstrip(_MARK)
    return bare.startswith(_FORMULA) and not _is_number(bare)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return not text.startswith(("\t", "\r"))
