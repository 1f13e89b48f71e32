"""The page of a benchmark asks nobody, escapes every name, and says what cannot be computed."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from paretoda.report.bench_page import find_base_row, find_plain_sums, render_bench_page
from paretoda.report.tables import TableStyle

EVIL = "<script>alert('x')</script>"


def row(name: str, task: str, seed: int, value: float | None, scheme: str = "linear", **more: Any) -> dict[str, Any]:
    result = {"error": EVIL} if value is None else {"accuracy": {"chosen": value, "last": value - 0.01}}
    told = {"method": "dann", "target_loss": "tcm", "scheme": scheme, "steps": 30}
    plain = {"suite": "s", "task": task, "name": name, "seed": seed, "settings": told, "seconds": 2.0 + len(name)}
    return {**plain, "moves": {EVIL: 3}, "versions": {"torch": EVIL}, "selection": "ensemble", **result, **more}


def rows() -> list[dict[str, Any]]:
    names = {"sum": ("linear", 0.0), EVIL: ("paretoda", 0.1), "mgda": ("mgda", -0.1)}
    return [
        row(name, task, seed, 0.5 + gain + 0.01 * seed, scheme, command=EVIL)
        for name, (scheme, gain) in names.items()
        for task in ("A", "B", EVIL)
        for seed in range(2)
    ]


class Tags(HTMLParser):
    void = frozenset({"meta", "link", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(page)
    assert not parser.open
    return parser.seen


def test_no_name_becomes_a_tag_and_nothing_is_fetched() -> None:
    page = render_bench_page([*rows(), row("bad", "A", 0, None)], title=EVIL, command=EVIL)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") > 20
    assert not re.findall(r"https?:|url\(|@import", page)
    fetched = [(tag, name) for tag, attributes in tags(page) for name in attributes if name in ("src", "href")]
    assert fetched == [("link", "href")]


def test_every_colour_of_the_page_is_defined_in_it() -> None:
    page = render_bench_page(rows(), title="t")
    assert set(re.findall(r"var\((--\w+)\)", page)) <= set(re.findall(r"(--\w+):", page))
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page


def test_everything_is_on_the_page() -> None:
    look = TableStyle(oracle=frozenset({"seer"}), references={"paper": {"A": 0.7}})
    page = render_bench_page([*rows(), row("seer", "A", 0, 0.9), row("bad", "A", 0, None)], title="t", style=look)
    headings = ["Chosen without", "After the last", "Against sum", "Against the plain sum", "Average ranks"]
    for heading in [*headings, "Task by task", "Cost", "Moves", "Failures", "Settings that differ", "Versions"]:
        assert f"<h2>{heading}" in page, heading
    assert "of which 1 failed" in page
    assert "seer (oracle)" in page
    assert "Published numbers" in page
    assert "+10.0" in page
    assert "So few tasks cannot show significance" in page


def test_the_pictures_have_a_dot_for_every_seed_and_a_line_for_every_contender() -> None:
    seen = [attributes.get("class") or "" for _, attributes in tags(render_bench_page(rows(), title="t"))]
    assert sum(kind.startswith("seed ") for kind in seen) == 2 * 3 * 2
    assert seen.count("at") == 3
    assert seen.count("mean up") == seen.count("mean down") == 3


@pytest.mark.parametrize(
    ("some", "said"),
    [
        ([row("a", "A", 0, 0.5)], "there is one contender only"),
        ([row("a", "A", 0, 0.5), row("b", "A", 0, 0.5)], "One task says nothing about other tasks"),
        ([row("a", "A", 0, 0.5), row("b", "B", 0, 0.5)], "no contender shares a finished run"),
        ([row("a", "A", 0, None)], "No contender has a result on every task"),
        ([{"suite": "s", "task": "A", "name": "a", "seed": 0, "accuracy": {"chosen": 0.1}}], "one contender only"),
        ([row(n, t, 0, 0.5) for n in "abc" for t in "AB"], "may differ by chance"),
    ],
)
def test_little_data_is_a_page_that_says_what_cannot_be_computed(some: list[dict[str, Any]], said: str) -> None:
    page = render_bench_page(some, title="t")
    assert said in page
    assert not [a for _, a in tags(page) if "nan" in "".join(a.get(k) or "" for k in ("x1", "x2", "cx", "cy", "d"))]


def test_no_runs_are_no_page() -> None:
    with pytest.raises(ValueError, match="no runs"):
        render_bench_page([], title="t")


def test_the_base_is_source_only_or_the_first() -> None:
    alone = row("plain", "A", 0, 0.1, settings={"method": "source-only", "target_loss": "none"})
    assert find_base_row([row("a", "A", 0, 0.1), alone]) == "plain"
    assert find_base_row([row("a", "A", 0, 0.1), row("source-only", "A", 0, 0.1, settings={})]) == "source-only"
    assert find_base_row([row("a", "A", 0, 0.1), row("b", "A", 0, 0.1)]) == "a"


def test_a_contender_meets_the_plain_sum_of_its_own_losses() -> None:
    def made(name: str, method: str, scheme: str) -> dict[str, Any]:
        return row(name, "A", 0, 0.1, settings={"method": method, "target_loss": "tcm", "scheme": scheme})

    dann = [made("d sum", "dann", "linear"), made("d p", "dann", "paretoda")]
    cdan = [made("c p", "cdan", "paretoda")]
    assert find_plain_sums([*dann, *cdan]) == {"d p": "d sum", "c p": "d sum"}
    assert find_plain_sums([*dann, *cdan, made("c sum", "cdan", "linear")]) == {"d p": "d sum", "c p": "c sum"}


def test_every_line_of_a_table_is_as_long_as_its_head() -> None:
    for table in re.findall(r"<table.*?</table>", render_bench_page(rows(), title="t"), re.S):
        lines = [line for line in re.findall(r"<tr.*?</tr>", table, re.S) if "colspan" not in line]
        assert len({len(re.findall(r"<t[hd][ >]", line)) for line in lines}) == 1
