"""Our numbers in docs/methods: what a bench of `contenders/methods.toml` measured, between each section's marks.

    paretoda bench comparison --contenders benchmarks/contenders/methods.toml --out BENCH
    python benchmarks/method_numbers.py BENCH

A second call changes nothing. Sections without a contender in the bench stay empty.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from paretoda.bench.contenders import select_variants
from paretoda.bench.store import Store
from paretoda.bench.suites import find_suite
from paretoda.objectives import ALIGNMENTS

PAGES = Path(__file__).parents[1] / "docs" / "methods"
SUITE = "comparison"
_MARKED = re.compile(r"(<!-- numbers (\S+) -->\n).*?(<!-- /numbers -->)", re.DOTALL)
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

Measured = Mapping[str, Mapping[str, Sequence[float]]]
"""Contender -> task -> accuracies in %, one for each seed."""


@dataclass(frozen=True)
class Rows:
    """What a section shows.

    Args:
        shown: what to call a contender's numbers -> its name in the bench.
        beside: contenders that stand in brackets, for comparison.
    """

    shown: Mapping[str, str]
    beside: tuple[str, ...] = ("source-only",)


def _plug_in(name: str) -> Rows:
    shown = {
        "with DANN, summed": f"dann+{name}",
        "under `paretoda` with DANN, TCM and propagation": f"dann+{name}, paretoda",
    }
    return Rows(shown, ("dann", "source-only"))


def _alignment(name: str) -> Rows:
    return Rows({"alone": name, "under `paretoda` with TCM and propagation": f"{name}, paretoda"})


SEVERAL_SOURCES = ("mdan", "m3sda")
"""Alignments for several sources: the tasks of the comparison have one."""

SECTIONS: dict[str, Rows] = {
    **{name: _alignment(name) for name in ALIGNMENTS if name not in SEVERAL_SOURCES},
    "source-only": Rows({"alone": "source-only", "with `--bn per-domain` (AdaBN)": "source-only, AdaBN"}, ()),
    **{name: _plug_in(name) for name in ("bsp", "mcc", "bnm")},
    "linear": Rows(
        {"DANN, TCM and propagation with weights 1:.3:.3:1": "dann+tcm+propagation, sum 1:.3:.3:1"},
        ("dann, paretoda", "source-only"),
    ),
    "paretoda": Rows(
        {"DANN, TCM and propagation": "dann, paretoda"}, ("dann+tcm+propagation, sum 1:.3:.3:1", "source-only")
    ),
    "metaalign": Rows({"with DANN": "dann, metaalign"}, ("dann", "source-only")),
    "auxilearn": Rows({"with DANN and TCM": "dann+tcm, auxilearn"}),
    "hypernetwork": Rows({"with DANN and TCM, equal preference": "dann+tcm, hypernetwork"}),
}
"""Section -> its contenders; other sections have none."""


def measured(directory: Path) -> Measured:
    """The chosen model's accuracies of the suite's runs, one variant for each; failed runs are missing.

    Args:
        directory: of the bench.
    """
    found: dict[str, dict[str, list[float]]] = {}
    rows = [row for row in Store(directory).read() if row["suite"] == SUITE]
    for row in select_variants(rows):
        if "error" not in row:
            found.setdefault(row["name"], {}).setdefault(row["task"], []).append(100 * row["accuracy"]["chosen"])
    return found


def sentence(rows: Rows, found: Measured) -> str:
    """The section's line; empty where none of its contenders has run.

    All means are over the tasks that every contender of the line has finished, so that they can be compared.

    Args:
        rows: of the section.
        found: as `measured` returns it.
    """
    shown = {text: name for text, name in rows.shown.items() if name in found}
    if not shown:
        return ""
    beside = [name for name in rows.beside if name in found]
    names = [*shown.values(), *beside]
    suite = list(find_suite(SUITE).tasks)
    tasks = [task for task in suite if all(found[name].get(task) for name in names)]
    if not tasks:
        return ""
    means = {name: _number(fmean(fmean(found[name][task]) for task in tasks)) for name in names}
    told = ", ".join(f"{text} {means[name]}" for text, name in shown.items())
    brackets = f" ({', '.join(f'{name} {means[name]}' for name in beside)})" if beside else ""
    order = f" ({', '.join(['in this order', *(['in brackets as above'] if beside else [])])})"
    return (
        f"{_how_many(len(tasks), len(suite))}, chosen without labels, mean of {_seeds(names, tasks, found)}: "
        f"{told}{brackets}. By task{order if len(names) > 1 else ''}: "
        f"{'; '.join(_of_task(task, list(shown.values()), beside, found) for task in tasks)}."
    )


def _of_task(task: str, shown: Sequence[str], beside: Sequence[str], found: Measured) -> str:
    numbers, brackets = (", ".join(_number(fmean(found[name][task])) for name in names) for names in (shown, beside))
    return f"{task} {numbers}" + (f" ({brackets})" if brackets else "")


def _how_many(tasks: int, of: int) -> str:
    return f"{_WORDS[tasks].capitalize()} task{'s' * (tasks > 1)}" + ("" if tasks == of else f" of {_WORDS[of]}")


def _seeds(names: Sequence[str], tasks: Sequence[str], found: Measured) -> str:
    counts = {len(found[name][task]) for name in names for task in tasks}
    few, many = min(counts), max(counts)
    return f"{few} seed{'s' * (few > 1)}" if few == many else f"{few} to {many} seeds"


def _number(value: float) -> str:
    return f"{value:.1f}"


def filled(page: str, found: Measured) -> str:
    """The page with a line between the marks of every section that has numbers, and nothing between the others.

    Args:
        page: its text.
        found: as `measured` returns it.
    """

    def put(match: re.Match[str]) -> str:
        text = sentence(SECTIONS[match[2]], found) if match[2] in SECTIONS else ""
        return match[1] + (f"{text}\n" if text else "") + match[3]

    return _MARKED.sub(put, page)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bench", type=Path, help="directory of the bench")
    parser.add_argument("--pages", type=Path, default=PAGES, help="directory of the pages")
    given = parser.parse_args()
    found = measured(given.bench)
    if not found:
        parser.error(f"{given.bench} has no finished run of the suite {SUITE!r}")
    for page in sorted(given.pages.glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = filled(before, found)
        page.write_text(after, encoding="utf-8")
        print(f"{page.name}: {'rewritten' if after != before else 'as it was'}")


if __name__ == "__main__":
    main()
