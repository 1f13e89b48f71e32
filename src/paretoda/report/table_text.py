"""A benchmark's table as Markdown, LaTeX and CSV."""

from __future__ import annotations

import re
from collections.abc import Sequence

from paretoda.core.cells import csv_text as cells_text
from paretoda.report.tables import PLAIN, Cell, Line, Look, Table, lines, notes


def markdown(table: Table, look: Look = PLAIN) -> str:
    """A Markdown table, and what a reader must know below it."""
    out = [["", *map(_markdown_text, table.columns), "average"], ["---", *["---:"] * (len(table.columns) + 1)]]
    own, published = _blocks(lines(table, look))
    for heading, block in (("", own), ("*published*", published)):
        out += [[heading, *[""] * (len(table.columns) + 1)]] if heading and block else []
        out += [[_markdown_text(x.name), *(f"**{t}**" if bold else t for t, bold in x.cells)] for x in block]
    below = "\\\n".join(map(_markdown_text, notes(table, look)))
    return "".join(f"| {' | '.join(row)} |\n" for row in out) + f"\n{below}\n"


def latex(table: Table, look: Look = PLAIN) -> str:
    """A `tabular` for the package booktabs, and what a reader must know below it."""
    own, published = _blocks(lines(table, look))
    out = [rf"\begin{{tabular}}{{l{'r' * (len(table.columns) + 1)}}}", r"\toprule"]
    out += [" & ".join(["", *map(_latex_text, table.columns), "average"]) + r" \\", r"\midrule"]
    for heading, block in (("", own), ("published", published)):
        if heading and block:
            out += [r"\midrule", rf"\multicolumn{{{len(table.columns) + 2}}}{{l}}{{\emph{{{heading}}}}} \\"]
        for line in block:
            cells = [rf"\textbf{{{_latex_text(text)}}}" if bold else _latex_text(text) for text, bold in line.cells]
            out.append(" & ".join([_latex_text(line.name), *cells]) + r" \\")
    below = " ".join(map(_latex_text, notes(table, look)))
    return "\n".join([*out, r"\bottomrule", r"\end{tabular}", rf"\par\smallskip{{\footnotesize {below}}}", ""])


def csv_text(table: Table) -> str:
    """Wide CSV for programs: mean, std and n (fractions, unrounded) of every task and of the average."""
    heads = [f"{column} {part}" for column in (*table.columns, "average") for part in Cell._fields]
    rows: list[list[object]] = [["name", *heads, "failed"]]
    for row in table.rows:
        cells = [part for cell in table.cells(row) for part in (cell or (None, None, 0))]
        rows.append([row, *cells, table.failed.get(row, 0)])
    return cells_text(rows)


def _blocks(shown: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    return [line for line in shown if not line.published], [line for line in shown if line.published]


def _markdown_text(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~&#$])", r"\\\1", " ".join(text.split()))


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$"}
_LATEX |= {"|": "$|$", "†": r"$^\dagger$", "‡": r"$^\ddagger$", "±": r"$\pm$"} | {c: "\\" + c for c in "&%$#_{}"}


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))
