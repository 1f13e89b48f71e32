"""Which rule chose the weights of which step, as one coloured strip."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from paretoda.report.curves import COLOURS

_WIDTH, _HEIGHT = 520, 44


def strip(moves: Sequence[str], order: Sequence[str]) -> Markup:
    """One stretch for each run of equal moves.

    Args:
        moves: of every step.
        order: all moves; the place decides the colour.
    """
    parts, start = [], 0
    block = Markup('<rect class="f{}" x="{}" y="0" width="{}" height="26"><title>{}</title></rect>')
    for move, group in groupby(moves):
        count = len(list(group))
        left, width = _WIDTH * start / len(moves), _WIDTH * count / len(moves)
        where = f"{move}: step {start + 1}" + (f" to {start + count}" if count > 1 else "")
        parts.append(block.format(order.index(move) % COLOURS, round(left, 2), round(width, 2), where))
        start += count
    ends = Markup('<text x="0" y="41">1</text><text x="{}" y="41" text-anchor="end">{}</text>')
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="Moves over steps">{}{}</svg>').format(
        _WIDTH, _HEIGHT, Markup("").join(parts), ends.format(_WIDTH, len(moves))
    )
