"""A study's results as one page: the same sections as Markdown with links, and as HTML with everything inside."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log10
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from paretoda.io.csv_cells import csv_text
from paretoda.io.files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#e6860b", "#17a2a8", "#8c564b", "#d13fa5", "#111111")
"""Colours that differ clearly on white, also in print."""
_FEW_POWERS = 2.5
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*", "h")
_STYLE = """
:root{color-scheme:light dark;--text:#1d2330;--soft:#5a6375;--line:#dde1e8;--back:#f6f7f9;--panel:#fff}
@media (prefers-color-scheme:dark){:root{--text:#e6e9ef;--soft:#a3acbc;--line:#39404e;--back:#14171d;--panel:#1c2129}}
body{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 3rem;background:var(--back);color:var(--text);
font:15px/1.5 system-ui,"Segoe UI","DejaVu Sans",sans-serif}
h1{font-size:1.6rem;line-height:1.25}h2{font-size:1.1rem;margin:1.6rem 0 .3rem}p{margin:.3rem 0;overflow-wrap:anywhere}
.answer{font-size:1.05rem}img{max-width:100%;height:auto;background:#fff;border-radius:8px;margin-top:.5rem}
div{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.92rem;margin:.5rem 0}
td:first-child{min-width:9rem}
th,td{padding:.25rem .7rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
th{color:var(--soft);vertical-align:bottom}th:first-child,td:first-child,.words *{text-align:left}
td{overflow-wrap:anywhere}td:not(:first-child){white-space:nowrap}.words td{white-space:normal}
"""
_FRAME = Markup(
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{style}</style>\n</head>\n'
    "<body>\n{body}\n</body>\n</html>\n"
)


def make_panels(rows: int, columns: int, *, width: float = 4.6, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, row by row; no window is opened.

    Args:
        rows: Number of rows of panels.
        columns: Number of columns of panels.
        width: Width of a panel, in inches.
        height: Height of a panel, in inches.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = [figure.add_subplot(rows, columns, place + 1) for place in range(rows * columns)]
    for one in axes:
        one.grid(True, color="#e3e6eb", linewidth=0.8)
        one.set_axisbelow(True)
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def set_log_axis(axes: Axes, axis: str) -> None:
    """Make an axis ("x" or "y") logarithmic, with ticks at 1, 2, 5, 10, ..., or at powers of ten over a wide range."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: PLC0415

    getattr(axes, f"set_{axis}scale")("log")
    own = axes.xaxis if axis == "x" else axes.yaxis
    low, high = own.get_data_interval()
    few = low > 0 and log10(high / low) <= _FEW_POWERS
    own.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    own.set_minor_locator(NullLocator())
    own.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))


def save_figure(figure: Figure, path: Path) -> str:
    """Write the SVG atomically and return its name."""
    from matplotlib import rc_context  # noqa: PLC0415

    text = io.StringIO()
    with rc_context({"svg.hashsalt": "paretoda"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    write_text(path, text.getvalue())
    return path.name


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    Args:
        columns: Headings; the first column is aligned left, the others right.
        rows: As many texts each.
        bold: (row, column) of the texts that stand out.
        words: Whether all columns are aligned left.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    bold: frozenset[tuple[int, int]] = frozenset()
    words: bool = False

    def markdown(self) -> str:
        """Return the table as Markdown."""
        marked = [
            [f"**{text}**" if (i, j) in self.bold else text for j, text in enumerate(map(_escape, row))]
            for i, row in enumerate(self.rows)
        ]
        rule = [":---", *[":---" if self.words else "---:"] * (len(self.columns) - 1)]
        return "".join(f"| {' | '.join(row)} |\n" for row in [list(map(_escape, self.columns)), rule, *marked])

    def csv(self) -> str:
        """Return the table as CSV, for programs."""
        return csv_text([self.columns, *self.rows])

    def html(self) -> Markup:
        """Return the table as HTML."""
        head = Markup("").join(Markup("<th>{}</th>").format(name) for name in self.columns)
        body = Markup("").join(
            Markup("<tr>{}</tr>").format(
                Markup("").join(
                    Markup("<td><b>{}</b></td>" if (i, j) in self.bold else "<td>{}</td>").format(text)
                    for j, text in enumerate(row)
                )
            )
            for i, row in enumerate(self.rows)
        )
        frame = Markup("<div><table{}><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>")
        return frame.format(Markup(' class="words"') if self.words else "", head, body)


@dataclass(frozen=True)
class Section:
    """A part of the page: heading, sentences, table and figure, each where there is one.

    Args:
        heading: Heading.
        sentences: Sentences, one paragraph each.
        grid: Table.
        figure: File name of an SVG in the study's directory.
    """

    heading: str
    sentences: Sequence[str] = ()
    grid: Grid | None = None
    figure: str | None = None


@dataclass(frozen=True)
class Page:
    """The result of a study.

    Args:
        title: Title of the page.
        answer: The result in a few sentences.
        sections: Tables and figures.
        facts: What is needed to repeat it: command, seeds, steps, versions.
        failures: One sentence for each run that failed.
    """

    title: str
    answer: Sequence[str]
    sections: Sequence[Section]
    facts: Mapping[str, str] = field(default_factory=dict)
    failures: Sequence[str] = ()

    def markdown(self) -> str:
        """Return the page with its figures as links."""
        parts = [f"# {_escape(self.title)}", *map(_escape, self.answer)]
        for section in self._all_sections():
            parts += [f"## {_escape(section.heading)}", *map(_escape, section.sentences)]
            parts += [section.grid.markdown().rstrip("\n")] if section.grid else []
            parts += [f"![{_escape(section.heading)}]({section.figure})"] if section.figure else []
        return "\n\n".join(parts) + "\n"

    def html(self, directory: Path) -> str:
        """Return the page with its figures inside."""
        parts = [Markup("<h1>{}</h1>").format(self.title)]
        parts += [Markup('<p class="answer">{}</p>').format(sentence) for sentence in self.answer]
        for section in self._all_sections():
            parts.append(Markup("<h2>{}</h2>").format(section.heading))
            parts += [Markup("<p>{}</p>").format(sentence) for sentence in section.sentences]
            parts += [section.grid.html()] if section.grid else []
            if section.figure:
                picture = base64.b64encode((directory / section.figure).read_bytes()).decode("ascii")
                tag = Markup('<img alt="{}" src="data:image/svg+xml;base64,{}">')
                parts.append(tag.format(section.heading, picture))
        return _FRAME.format(title=self.title, style=Markup(_STYLE), body=Markup("\n").join(parts))

    def write(self, directory: Path) -> None:
        """Write study.md, report.html and a CSV of every table."""
        write_text(directory / "study.md", self.markdown())
        write_text(directory / "report.html", self.html(directory))
        for section in self.sections:
            if section.grid is not None:
                write_text(directory / f"{_file_name(section.heading)}.csv", section.grid.csv())

    def _all_sections(self) -> list[Section]:
        more = [Section("Failed runs", self.failures)] if self.failures else []
        facts = Grid(["", "value"], [[name, value] for name, value in self.facts.items()], words=True)
        return [*self.sections, *more, *([Section("To repeat it", grid=facts)] if self.facts else [])]


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~#])", r"\\\1", " ".join(text.split()))


def _file_name(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
