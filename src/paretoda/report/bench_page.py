"""The page of a benchmark: one file that needs no network; every name is escaped."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isnan
from statistics import median

from paretoda.report.page import render_template
from paretoda.report.ranks import draw_differences, draw_ranks
from paretoda.report.significance import Paired, Ranking, compare, correct_p_values, paired_differences, rank_contenders
from paretoda.report.tables import PLAIN, Row, Table, TableStyle, format_lines, keep_latest, make_notes, make_table


def render_bench_page(
    rows: Iterable[Row], *, title: str, style: TableStyle = PLAIN, command: str = "", measure: str = "accuracy"
) -> str:
    """Return the HTML of a benchmark's results.

    Args:
        rows: See `paretoda.report.tables.make_table`; a row may also have a `command` that repeats the run.
        title: Title of the page.
        style: Oracles and published numbers; without a base, source-only or else the first row is the base.
        command: Command that repeats everything.
        measure: Key of the numbers.

    Raises:
        ValueError: There are no runs.
    """
    runs = keep_latest(rows)
    if not runs:
        raise ValueError("there are no runs to report: the benchmark has not finished any")
    chosen, last = make_table(runs, measure=measure), make_table(runs, kind="last", measure=measure)
    base = style.base or find_base_row(runs)
    style = replace(style, base=base)
    others = {name: base for name in chosen.rows if name != base}
    families = [(f"Against {base}", others), ("Against the plain sum of the losses", find_plain_sums(runs))]
    apart = {name: paired_differences(chosen.runs(name), chosen.runs(base)) for name in others}
    ranking = _rank_complete(chosen, style)
    facts = {
        "short": _summarise(chosen, style),
        "tables": [
            (heading, [*table.columns, "average"], format_lines(table, style), make_notes(table, style))
            for heading, table in (("Chosen without target labels", chosen), ("After the last step", last))
        ],
        "comparisons": [
            (heading, _compare_partners(chosen, partners, style)) for heading, partners in families if partners
        ],
        "picture": draw_ranks(ranking) if ranking else "",
        "panels": draw_differences({name: tasks for name, tasks in apart.items() if tasks}),
        "costs": _measure_costs(runs, base),
        "moves": _share_moves(runs),
        "failures": [row for row in runs if "error" in row],
        "settings": _compare_settings(runs),
        "versions": _collect_versions(runs),
        "points": format_points,
        "p_text": format_p,
        "commands": list(filter(None, dict.fromkeys([command, *(str(row.get("command") or "") for row in runs)]))),
    }
    return render_template("bench.html", title=title, base=base, table=chosen, runs=runs, ranking=ranking, **facts)


def find_base_row(runs: Sequence[Row]) -> str:
    """Return the source-only row if there is one, otherwise the first."""
    alone = [row for row in runs if row["name"] == "source-only" or _losses(row) == ("source-only", "none")]
    return str((alone or runs)[0]["name"])


def find_plain_sums(runs: Sequence[Row]) -> dict[str, str]:
    """Return contender -> the contender that adds up the same losses with equal weights.

    Where only one contender is a plain sum, all are compared with it.
    """
    losses = {row["name"]: _losses(row) for row in runs if _losses(row) not in (None, ("source-only", "none"))}
    settings = {row["name"]: row.get("settings") or {} for row in runs if row["name"] in losses}
    equal = [
        name for name in settings if settings[name].get("scheme") == "linear" and not settings[name].get("loss_weights")
    ]
    sums = {losses[name]: name for name in reversed(equal)}
    only = equal[0] if len(sums) == 1 else None
    partners = {name: sums.get(pair, only) for name, pair in losses.items()}
    return {name: partner for name, partner in partners.items() if partner is not None and partner != name}


def format_points(value: float) -> str:
    """Format a difference of fractions in points, with its sign; a dash where there is none.

    >>> format_points(0.0123)
    '+1.2'
    """
    return "–" if isnan(value) else f"{100 * value:+.1f}".replace("-0.0", "+0.0").replace("-", "−")  # noqa: RUF001


def format_p(pair: Paired) -> str:
    """Format the corrected p value; a dash where a single task (or run) allows no test."""
    if pair.smallest_p >= 1:
        return "–"  # noqa: RUF001
    return "< 0.001" if pair.p_holm < 0.001 else f"{pair.p_holm:.3f}"


def _losses(row: Row) -> tuple[str, str] | None:
    settings = row.get("settings") or {}
    return (str(settings["method"]), str(settings.get("target_loss", "none"))) if "method" in settings else None


def _compare_partners(
    table: Table, partners: Mapping[str, str], style: TableStyle
) -> list[tuple[str, str, Paired, Paired]]:
    """Return name, partner, and the comparison over tasks and over runs; without oracles."""
    pairs = {
        name: (table.runs(name), table.runs(other)) for name, other in partners.items() if name not in style.oracle
    }
    tasks = correct_p_values({name: found for name, pair in pairs.items() if (found := compare(*pair))})
    runs = correct_p_values({name: found for name, pair in pairs.items() if (found := compare(*pair, by="run"))})
    return [(name, partners[name], found, runs[name]) for name, found in tasks.items()]


def _rank_complete(table: Table, style: TableStyle) -> Ranking | None:
    """Rank the contenders that have every task that any has; None below two contenders."""
    tasks = [task for task in table.columns if any((row, task) in table.values for row in table.rows)]
    rivals = {row: table.cells(row)[:-1] for row in table.rows if row not in style.oracle}
    means = {row: [cell.mean for cell in cells if cell] for row, cells in rivals.items()}
    whole = {row: values for row, values in means.items() if tasks and len(values) == len(tasks)}
    return rank_contenders(whole) if len(whole) > 1 else None


def _summarise(table: Table, style: TableStyle) -> list[str]:
    """Return the result in a sentence or two."""
    totals = {row: total for row in table.rows if (total := table.cells(row)[-1]) and row not in style.oracle}
    if not totals:
        return ["No contender has a result on every task, so there is no average."]
    best = max(totals, key=lambda row: totals[row].mean)
    said = [f"Best average: {best}, {totals[best]} %."]
    base = str(style.base)
    pair = compare(table.runs(best), table.runs(base)) if best != base else None
    if pair:
        interval = (
            f", 95 % interval {format_points(pair.low)} to {format_points(pair.high)}" if not isnan(pair.low) else ""
        )
        tasks = f"better on {pair.wins} of {pair.wins + pair.ties + pair.losses} tasks"
        said.append(f"Against {base}: {format_points(pair.difference)} points{interval}, {tasks}.")
    return said


def _measure_costs(runs: Sequence[Row], base: str) -> list[tuple[str, float, float | None, str]]:
    """Return name, median seconds, median ratio to the base's same runs, and the median step that was chosen."""
    seconds: dict[str, dict[tuple[str, int], float]] = {}
    steps: dict[str, list[int]] = {}
    for row in runs:
        if "error" not in row and row.get("seconds"):
            seconds.setdefault(row["name"], {})[row["task"], row["seed"]] = row["seconds"]
        if row.get("chosen_step") is not None:
            steps.setdefault(row["name"], []).append(row["chosen_step"])
    found = []
    for name, own in seconds.items():
        ratios = [value / seconds[base][run] for run, value in own.items() if run in seconds.get(base, {})]
        step = f"{median(steps[name]):g}" if name in steps else ""
        found.append((name, median(own.values()), median(ratios) if ratios else None, step))
    return found


def _share_moves(runs: Sequence[Row]) -> list[tuple[str, list[tuple[str, float]]]]:
    """Return name, and (move, share of the steps), the most frequent first."""
    counted: dict[str, Counter[str]] = {}
    for row in runs:
        counted.setdefault(row["name"], Counter()).update(row.get("moves") or {})
    return [
        (name, [(move, count / moves.total()) for move, count in moves.most_common() if count])
        for name, moves in counted.items()
        if moves.total()
    ]


def _compare_settings(runs: Sequence[Row]) -> tuple[list[str], dict[str, list[str]], dict[str, str]]:
    """Return settings that differ, each contender's values of them, and the settings that do not differ."""
    names = list(dict.fromkeys(row["name"] for row in runs))
    keys = dict.fromkeys(key for row in runs for key in row.get("settings") or {} if key != "seed")
    texts = {key: [_format_setting(row, key) for row in runs] for key in keys}
    values = {
        key: [
            ", ".join(dict.fromkeys(t for t, row in zip(column, runs, strict=True) if row["name"] == name))
            for name in names
        ]
        for key, column in texts.items()
    }
    differ = [key for key, column in values.items() if len(set(column)) > 1]
    same = {key: column[0] for key, column in values.items() if key not in differ}
    return differ, {name: [values[key][place] for key in differ] for place, name in enumerate(names)}, same


def _format_setting(row: Row, key: str) -> str:
    value = (row.get("settings") or {}).get(key, "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _collect_versions(runs: Sequence[Row]) -> dict[str, str]:
    """Return name -> version, or versions where the runs had several."""
    found: dict[str, dict[str, None]] = {}
    for row in runs:
        for name, version in (row.get("versions") or {}).items():
            found.setdefault(name, {})[str(version)] = None
    found["selection"] = {str(row["selection"]): None for row in runs if row.get("selection")}
    return {name: ", ".join(versions) for name, versions in found.items() if versions}
