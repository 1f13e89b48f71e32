"""Tables of a benchmark's runs, means over seeds, as values and as Markdown, LaTeX and CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple, TypeAlias

from paretoda.io.csv_cells import csv_text as cells_text
from paretoda.report.significance import By, Paired, compare_all

Row: TypeAlias = Mapping[str, Any]
_SIGNED = {"r2": "R²"}
"""Measures that may be below 0 -> their names."""
KINDS = {"chosen": "of the model chosen without target labels", "last": "after the last step"}
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$"}


class Cell(NamedTuple):
    """Mean over seeds, their sample standard deviation (None below two), and their number."""

    mean: float
    std: float | None
    n: int

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f}" + ("" if self.std is None else f" ± {100 * self.std:.1f}")


@dataclass(frozen=True)
class Table:
    """Every value of a benchmark.

    Args:
        columns: Tasks, in order of first appearance.
        rows: Contenders, in order of first appearance.
        values: (row, column) -> seed -> fraction; a cell without values is absent.
        failed: Row -> number of runs without a value, where there are any.
        caption: What the numbers are.
    """

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    values: Mapping[tuple[str, str], Mapping[int, float]]
    failed: Mapping[str, int]
    caption: str

    def cells(self, row: str) -> list[Cell | None]:
        """Return one cell for each column, None where nothing was measured, and the average.

        The mean of the average is over the tasks' means, its spread over the averages of those seeds that every task
        has.
        """
        found = [self.values.get((row, column), {}) for column in self.columns]
        cells = [_cell(list(seeds.values())) for seeds in found]
        if not all(found):
            return [*cells, None]
        whole = [fmean(seeds[seed] for seeds in found) for seed in found[0] if all(seed in seeds for seeds in found)]
        spread = stdev(whole) if len(whole) > 1 else None
        return [*cells, Cell(fmean(cell.mean for cell in cells if cell), spread, len(whole))]

    def runs(self, row: str) -> dict[tuple[str, int], float]:
        """Return (task, seed) -> value, as comparisons need it."""
        return {(c, seed): v for c in self.columns for seed, v in self.values.get((row, c), {}).items()}


@dataclass(frozen=True)
class TableStyle:
    """How a table is shown.

    Args:
        oracle: Rows that used target labels: marked, and never the best.
        references: Name -> task -> published fraction, in a block of their own, and never the best.
        reference_stds: Name -> task -> published standard deviation of a reference, where there is one.
        base: Row that the others' averages are tested against.
        by: See `paretoda.report.significance`.
    """

    oracle: frozenset[str] = frozenset()
    references: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    reference_stds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    base: str | None = None
    by: By = "task"


class Line(NamedTuple):
    """A row as it is shown: (text, whether it is the best) for each column and the average."""

    name: str
    cells: Sequence[tuple[str, bool]]
    published: bool = False


PLAIN = TableStyle()


def make_table(rows: Iterable[Row], *, kind: Literal["chosen", "last"] = "chosen", measure: str = "accuracy") -> Table:
    """Make the table of benchmark rows; of several rows of the same run the last counts.

    Args:
        rows: suite, task, name, seed, and `measure` -> `kind` -> fraction; without it, the run counts as failed.
        kind: "chosen" for the chosen model, "last" for the model after the last step.
        measure: Key of the numbers.

    Raises:
        ValueError: A run has two different settings, or a value is no fraction.
    """
    runs = keep_latest(rows)
    values: dict[tuple[str, str], dict[int, float]] = {}
    failed: dict[str, int] = {}
    for row in runs:
        value = (row.get(measure) or {}).get(kind)
        if "error" in row or value is None or not isfinite(value):
            failed[row["name"]] = failed.get(row["name"], 0) + 1
        else:
            values.setdefault((row["name"], row["task"]), {})[row["seed"]] = _check_fraction(
                value, row["name"], measure
            )
    columns, names = tuple({row["task"]: None for row in runs}), tuple({row["name"]: None for row in runs})
    called = _SIGNED.get(measure, measure.replace("_", " "))
    caption = f"Target {called} (oracle) in per cent {KINDS[kind]}, mean ± std over seeds."
    return Table(columns, names, values, failed, caption)


def keep_latest(rows: Iterable[Row]) -> list[Row]:
    """Return one row for each run, the last; tasks carry their suite where there are several.

    Raises:
        ValueError: Two rows of a run have different settings, and one must be chosen without labels.
    """
    rows = list(rows)
    several = len({row.get("suite") for row in rows}) > 1
    runs: dict[tuple[str, str, int], Row] = {}
    for row in rows:
        task = f"{row.get('suite')}: {row['task']}" if several else row["task"]
        old = runs.get((task, row["name"], row["seed"]), row)
        if old.get("settings") != row.get("settings"):
            raise ValueError(f"{row['name']!r} ran {task} with seed {row['seed']} under different settings")
        runs[task, row["name"], row["seed"]] = {**row, "task": task}
    return list(runs.values())


def format_lines(table: Table, style: TableStyle = PLAIN) -> list[Line]:
    """Return the rows as texts, references last."""
    rivals = [table.cells(row) for row in table.rows if row not in style.oracle]
    best = [max((_round_percent(cell) for cell in cells if cell), default=0.0) for cells in zip(*rivals, strict=True)]
    pairs, shown = compare_rows(table, style), []
    for row in table.rows:
        cells = table.cells(row)
        texts = [str(cell or "") for cell in cells]
        if cells[-1] and row in pairs and pairs[row].p_holm < 0.05:
            texts[-1] += "†" if pairs[row].difference > 0 else "‡"
        if row in style.oracle:
            shown.append(Line(f"{row} (oracle)", [(text, False) for text in texts]))
        else:
            bold = [cell is not None and _round_percent(cell) == top for cell, top in zip(cells, best, strict=True)]
            shown.append(Line(row, list(zip(texts, bold, strict=True))))
    published = [Line(name, _format_reference(table, style, name), published=True) for name in style.references]
    return [*shown, *published]


def _format_reference(table: Table, style: TableStyle, name: str) -> list[tuple[str, bool]]:
    """Return the cells of a published row; their average is ours, so that it has no published deviation."""
    known = {(name, task): {0: _check_fraction(value, name)} for task, value in style.references[name].items()}
    *cells, average = Table(table.columns, (name,), known, {}, "").cells(name)
    stds = style.reference_stds.get(name, {})
    found = [cell and cell._replace(std=stds.get(task)) for task, cell in zip(table.columns, cells, strict=True)]
    return [(str(cell or ""), False) for cell in (*found, average)]


def make_notes(table: Table, style: TableStyle = PLAIN) -> list[str]:
    """Return what a reader must know: what the numbers are, the marks, and the failures."""
    sentences = [table.caption]
    if pairs := compare_rows(table, style):
        test = f"p < 0.05, sign-flip test over {style.by}s, Holm-corrected"
        hopeless = min(pair.smallest_p for pair in pairs.values()) * len(pairs) >= 0.05
        few = f"; so few {style.by}s for {len(pairs)} comparisons cannot reach it" if hopeless else ""
        sentences.append(f"† better, ‡ worse than {style.base} on average: {test}{few}.")
    if style.oracle.intersection(table.rows):
        sentences.append("Rows marked (oracle) saw target labels and are never the best.")
    if any(not stds.keys().isdisjoint(table.columns) for stds in style.reference_stds.values()):
        sentences.append("Published rows have ± where their source prints it; their averages are computed here.")
    if table.failed:
        each = ", ".join(f"{name}: {count}" for name, count in table.failed.items())
        sentences.append(f"Failed runs, which are missing: {sum(table.failed.values())} ({each}).")
    return sentences


def compare_rows(table: Table, style: TableStyle) -> dict[str, Paired]:
    """Compare every row except oracles with the base, if the style names one.

    Raises:
        ValueError: The table has no such base.
    """
    if style.base is None:
        return {}
    if style.base not in table.rows:
        raise ValueError(f"no row is called {style.base!r}; there are {', '.join(table.rows)}")
    kept = [row for row in table.rows if row == style.base or row not in style.oracle]
    return compare_all({row: table.runs(row) for row in kept}, style.base, by=style.by)


def _cell(values: Sequence[float]) -> Cell | None:
    return Cell(fmean(values), stdev(values) if len(values) > 1 else None, len(values)) if values else None


def _round_percent(cell: Cell) -> float:
    return float(f"{100 * cell.mean:.1f}")


def _check_fraction(value: float, name: str, measure: str = "accuracy") -> float:
    if not (value >= 0 or measure in _SIGNED) or value > 1:
        raise ValueError(f"{name!r} has the value {value}; values are fractions from 0 to 1, 0.62 for 62 %")
    return float(value)


def to_markdown(table: Table, style: TableStyle = PLAIN) -> str:
    """Return a Markdown table with its notes below."""
    out = [["", *map(_markdown_text, table.columns), "average"], ["---", *["---:"] * (len(table.columns) + 1)]]
    own, published = _split_blocks(format_lines(table, style))
    for heading, block in (("", own), ("*published*", published)):
        out += [[heading, *[""] * (len(table.columns) + 1)]] if heading and block else []
        out += [[_markdown_text(x.name), *(f"**{t}**" if bold else t for t, bold in x.cells)] for x in block]
    below = "\\\n".join(map(_markdown_text, make_notes(table, style)))
    return "".join(f"| {' | '.join(row)} |\n" for row in out) + f"\n{below}\n"


def to_latex(table: Table, style: TableStyle = PLAIN) -> str:
    """Return a `tabular` for the package booktabs with its notes below."""
    own, published = _split_blocks(format_lines(table, style))
    out = [rf"\begin{{tabular}}{{l{'r' * (len(table.columns) + 1)}}}", r"\toprule"]
    out += [" & ".join(["", *map(_latex_text, table.columns), "average"]) + r" \\", r"\midrule"]
    for heading, block in (("", own), ("published", published)):
        if heading and block:
            out += [r"\midrule", rf"\multicolumn{{{len(table.columns) + 2}}}{{l}}{{\emph{{{heading}}}}} \\"]
        for line in block:
            cells = [rf"\textbf{{{_latex_text(text)}}}" if bold else _latex_text(text) for text, bold in line.cells]
            out.append(" & ".join([_latex_text(line.name), *cells]) + r" \\")
    below = " ".join(map(_latex_text, make_notes(table, style)))
    return "\n".join([*out, r"\bottomrule", r"\end{tabular}", rf"\par\smallskip{{\footnotesize {below}}}", ""])


def to_csv(table: Table) -> str:
    """Return wide CSV for programs: mean, std and n (fractions, unrounded) of every task and of the average."""
    heads = [f"{column} {part}" for column in (*table.columns, "average") for part in Cell._fields]
    rows: list[list[object]] = [["name", *heads, "failed"]]
    for row in table.rows:
        cells = [part for cell in table.cells(row) for part in (cell or (None, None, 0))]
        rows.append([row, *cells, table.failed.get(row, 0)])
    return cells_text(rows)


def _split_blocks(shown: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    return [line for line in shown if not line.published], [line for line in shown if line.published]


def _markdown_text(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~&#$])", r"\\\1", " ".join(text.split()))


_LATEX |= {"|": "$|$", "²": "$^2$", "†": r"$^\dagger$", "‡": r"$^\ddagger$", "±": r"$\pm$"} | {
    c: "\\" + c for c in "&%$#_{}"
}


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))
