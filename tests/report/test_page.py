"""The page is one file that asks nobody, shows everything, and escapes every name."""

import re
from html.parser import HTMLParser
from math import inf, nan
from typing import Any

import pytest

from paretoda.report.facts import RunFacts, cosine_curves, count_classes, count_conflicts, count_moves, score_curves
from paretoda.report.page import Comparison, render_run_page

EVIL = "<script>alert('x')</script>"


def line(step: int, **changes: Any) -> dict[str, Any]:
    plain = {
        "step": step,
        "losses": {"source": 1 / step, EVIL: 0.5},
        "weights": {"source": 1.0, EVIL: 1.0},
        "move": "guided",
        "cosines": [[1.0, -0.2], [-0.2, 1.0]],
        "guide_loss": 0.3,
        "guide_cosines": [0.1, 0.2],
    }
    return plain | changes


def facts(**changes: Any) -> RunFacts:
    plain: dict[str, Any] = {
        "title": f"run {EVIL}",
        "settings": {"method": EVIL, "target_loss": "tcm", "scheme": "paretoda", "seed": 0, "backbone": EVIL},
        "environment": {"python": EVIL},
        "history": [line(step) for step in range(1, 11)],
        "candidates": [{"step": 5, "im": 0.1, EVIL: nan}, {"step": 10, "im": 0.4, EVIL: 1.0}],
        "chosen": 10,
        "scores": {"im": 0.4, EVIL: -0.0},
        "sentences": [EVIL, "Adaptation may have made the model worse."],
        "predictions": [(EVIL, EVIL, 0.4), ("b", "cat", 0.9)],
    }
    return RunFacts(**(plain | changes))


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def tags(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(page)
    return parser.seen


def test_no_name_becomes_a_tag() -> None:
    table = Comparison(EVIL, ["", EVIL], [[EVIL, "1"]], EVIL)
    page = render_run_page(facts(), table)
    assert not [tag for tag, _ in tags(page) if tag == "script"]
    assert "<script" not in page
    assert page.count("&lt;script&gt;") > 10


def test_nothing_is_fetched() -> None:
    page = render_run_page(facts())
    assert not re.findall(r"https?:|url\(|@import|//[a-z]", page)
    fetched = [(tag, name) for tag, attributes in tags(page) for name in attributes if name in ("src", "href")]
    assert fetched[0] == ("link", "href")  # the empty icon, so that browsers ask for none
    links = [attributes["href"] or "" for tag, attributes in tags(page) if tag == "a"]
    assert links
    assert all(link.startswith("#") for link in links)
    assert len(fetched) == 1 + len(links)
    assert 'href="data:,"' in page
    assert "default-src 'none'" in page


def test_everything_is_on_the_page() -> None:
    page = render_run_page(facts(), Comparison("Target accuracy", ["", "oracle"], [["DANN", "71.5 ± 0.3"]], "3 seeds"))
    for heading in ("Losses", "Weights", "Cosines of gradients", "Guide", "Candidates", "Moves", "Scores without"):
        assert f"<h3>{heading}" in page
    assert page.count("<svg") == 6
    assert "71.5 ± 0.3" in page
    assert 'class="warn">Adaptation' in page
    assert "-0.0000" not in page
    assert "prefers-color-scheme:dark" in page
    assert 'name="viewport"' in page


@pytest.mark.parametrize(
    "changes",
    [
        {"history": []},
        {"history": [line(1)]},
        {"history": [line(1, cosines=None, guide_loss=None, guide_cosines=None)], "candidates": [], "predictions": []},
        {"history": [line(1), line(2, losses={"source": nan, EVIL: inf}), line(3)]},
        {"scores": {"im": nan}, "candidates": [{"step": 1, "im": nan}]},
    ],
)
def test_a_page_of_little_or_strange_data_is_a_page(changes: dict[str, Any]) -> None:
    page = render_run_page(facts(**changes))
    assert page.rstrip().endswith("</html>")
    drawn = [attributes.get("points") or "" for tag, attributes in tags(page) if tag == "polyline"]
    assert not [points for points in drawn if "nan" in points or "inf" in points]


def test_facts_are_counted() -> None:
    history = [line(1), line(2, move="descent"), line(3)]
    assert count_moves(history) == [("guided", 2, 2 / 3), ("descent", 1, 1 / 3)]
    assert set(cosine_curves(history)) == {f"source · {EVIL}", "source · guide", f"{EVIL} · guide"}
    assert count_conflicts({"a · b": [(1, -0.5), (2, nan), (3, 0.25), (4, 0.25)]}) == [
        ("a · b", 0.0, pytest.approx(1 / 3))
    ]
    counted = count_classes([("a", "cat", 0.5), ("b", "dog", 1.0), ("c", "cat", 1.0)])
    assert counted == [("cat", 2, pytest.approx(2 / 3), 0.75), ("dog", 1, pytest.approx(1 / 3), 1.0)]
    scores = score_curves([{"step": 1, "im": -4.0, "dev": 2.0}, {"step": 2, "im": 6.0, "dev": 2.0}])
    assert scores == {"im": [(1, 0.0), (2, 1.0)], "dev": [(1, 0.5), (2, 0.5)]}
