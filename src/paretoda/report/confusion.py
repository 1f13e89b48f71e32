"""Labels against predictions: a matrix as SVG, and precision and recall of every class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

_NAMED = 40
"""Largest number of classes whose names stand beside the matrix."""
_NUMBERED = 20
"""Largest number of classes whose cells have numbers."""
_LETTERS = 14
_MISTAKES = 8


@dataclass(frozen=True)
class Confusion:
    """How often each label was predicted as each class.

    Args:
        heading: Whose samples were counted.
        classes: Names of the K classes.
        counts: K rows, one for each label, of K numbers, one for each prediction.
        oracle: Whether target labels were used.
    """

    heading: str
    classes: Sequence[str]
    counts: Sequence[Sequence[int]]
    oracle: bool = False

    @property
    def samples(self) -> int:
        """Number of samples."""
        return sum(map(sum, self.counts))

    @property
    def accuracy(self) -> float:
        """Share on the diagonal; 0 without samples."""
        return sum(row[place] for place, row in enumerate(self.counts)) / max(1, self.samples)

    def rows(self) -> list[tuple[str, int, int, float | None, float | None]]:
        """Return name, samples, predictions, precision and recall of each class; None for 0 / 0."""
        found = []
        for place, name in enumerate(self.classes):
            right, samples = self.counts[place][place], sum(self.counts[place])
            predicted = sum(row[place] for row in self.counts)
            found.append((name, samples, predicted, _share(right, predicted), _share(right, samples)))
        return found

    def mistakes(self) -> list[tuple[str, str, int]]:
        """Return the most frequent mistakes: label, prediction, count."""
        wrong = [
            (label, taken, count)
            for label, row in zip(self.classes, self.counts, strict=True)
            for taken, count in zip(self.classes, row, strict=True)
            if label != taken and count
        ]
        return sorted(wrong, key=lambda mistake: -mistake[2])[:_MISTAKES]


def draw_matrix(confusion: Confusion) -> Markup:
    """Return the matrix as SVG; a row is a label, and the colour is the share of the row."""
    number = len(confusion.classes)
    named = number <= _NAMED
    cell = max(2.0, min(44.0, 480 / number))
    edge = 12 + 6.6 * min(_LETTERS, max(map(len, confusion.classes))) if named else 22.0
    size = round(edge + number * cell + 2, 1)
    parts = _draw_names(confusion.classes, cell, edge) if named else []
    for row, counts in enumerate(confusion.counts):
        for column, count in enumerate(counts):
            if count or number <= _NUMBERED:
                spot = (edge + column * cell, edge + row * cell, cell)
                parts.append(_draw_cell(confusion, (row, column), spot, number <= _NUMBERED))
    frame = Markup('<rect class="frame" x="{0}" y="{0}" width="{1}" height="{1}"/>').format(
        round(edge, 1), round(number * cell, 1)
    )
    sides = Markup(
        '<text class="side" x="{0}" y="10">predicted →</text><text class="side" x="0" y="{1}">label ↓</text>'
    )
    return Markup(
        '<div class="scroll"><svg class="matrix" style="max-width:{1}px;min-width:{2}px" viewBox="0 0 {0} {0}" '
        'role="img" aria-label="{3}">{4}</svg></div>'
    ).format(
        size,
        round(size * 1.15),
        round(size * 0.62),
        f"Confusion matrix: {confusion.heading}",
        Markup("").join([*parts, frame, Markup("") if named else sides.format(round(edge, 1), round(edge + 10, 1))]),
    )


def _draw_cell(
    confusion: Confusion, place: tuple[int, int], spot: tuple[float, float, float], numbered: bool
) -> Markup:
    row, column = place
    x, y, side = spot
    count = confusion.counts[row][column]
    share = count / max(1, sum(confusion.counts[row]))
    title = f"label {confusion.classes[row]}, predicted {confusion.classes[column]}: {count} ({share:.0%} of the label)"
    text = Markup("")
    if numbered and count:
        text = Markup('<text class="{}" x="{}" y="{}" text-anchor="middle">{}</text>').format(
            "on" if share > 0.5 else "off", round(x + side / 2, 1), round(y + side / 2 + 4, 1), count
        )
    return Markup(
        '<g><title>{}</title><rect class="cell {}" x="{}" y="{}" width="{}" height="{}" fill-opacity="{}"/>{}</g>'
    ).format(
        title,
        "right" if row == column else "wrong",
        round(x, 1),
        round(y, 1),
        round(side, 1),
        round(side, 1),
        round(0.9 * share, 3),
        text,
    )


def _draw_names(classes: Sequence[str], cell: float, edge: float) -> list[Markup]:
    """Return the classes beside the rows and, rotated, above the columns."""
    parts = []
    turned = max(map(len, classes)) > 2
    above = Markup('<text transform="translate({} {}) rotate(-90)">{}</text>')
    upright = Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>')
    for place, name in enumerate(classes):
        short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
        middle = round(edge + (place + 0.5) * cell, 1)
        parts += [
            Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(round(edge - 5, 1), middle + 4, short),
            (above if turned else upright).format(middle + 4 * turned, round(edge - 5, 1), short),
        ]
    return parts


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
