"""The results of the step benchmark as a table, beside the goals of the design."""

from __future__ import annotations

from typing import TypedDict

import memory


class Row(TypedDict):
    """One variant: ratios to plain, its theoretical ratio, and its memory above plain in units of d floats."""

    name: str
    ratio: float
    low: float
    high: float
    theory: float
    memory: float | None


class Result(TypedDict):
    """One network: its size, the rows, and the share of an exact step that Gram matrix and programme take."""

    dimension: int
    size: int
    batch: int
    repeats: int
    clock: str
    threads: int
    rows: list[Row]
    gram_and_programme: float


def show(network: str, result: Result) -> None:
    """The result as a table, with the goals of the design."""
    print(
        f"\n{network}: {result['dimension']:,} shared parameters (d), {result['batch']} images of {result['size']} px "
        f"a domain, {result['repeats']} rounds, {result['threads']} threads, "
        f"{result['clock']} time"
    )
    where = f"memory above plain ({memory.SIZE} px, batch {memory.BATCH})"
    print(f"{'':20}{'ratio':>7}{'spread':>15}{'theory':>8}   {where}")
    for row in result["rows"]:
        above = row["memory"]
        text = "" if above is None else f"{above:6.2f} d floats, {above * 4 * result['dimension'] / 2**20:6.0f} MiB"
        spread = f"{row['low']:.2f}-{row['high']:.2f}"
        print(f"{row['name']:20}{row['ratio']:6.2f}x{spread:>15}{row['theory']:7.2f}x   {text}")
    print(f"Gram matrix and programme: {100 * result['gram_and_programme']:.2f} % of an exact step")
    for line in goals(result):
        print(line)


def goals(result: Result) -> list[str]:
    """Each goal of the design and whether this run meets it."""
    rows = {row["name"]: row for row in result["rows"]}
    found: list[tuple[str, float, float]] = [
        ("Gram matrix and programme <= 0.02 of an exact step", result["gram_and_programme"], 0.02)
    ]
    exact, last, authors = rows.get("exact, per-domain"), rows.get("last"), rows.get("authors")
    if exact:
        found.append(("exact, per-domain <= 2.4x plain", exact["ratio"], 2.4))
        if authors:
            found.append(("exact, per-domain <= 0.5x the authors' step", exact["ratio"] / authors["ratio"], 0.5))
        if exact["memory"] is not None:
            found.append(("exact, per-domain <= 4 d floats above plain", exact["memory"], 4.0))
    if last:
        found.append(("last <= 1.25x plain", last["ratio"], 1.25))
    return [f"{'met   ' if value <= limit else 'MISSED'} {name}: {value:.3f}" for name, value, limit in found]
