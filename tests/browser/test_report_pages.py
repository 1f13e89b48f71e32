"""The pages in a real browser: nothing is fetched, everything is drawn, readable in light, dark, small and on paper."""

from dataclasses import replace
from math import sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report.test_page import facts, line

from paretoda.report.confusion import Confusion
from paretoda.report.facts import Card, Pictures, RunFacts
from paretoda.report.page import Comparison, render_run_page, render_runs_page
from paretoda.report.scatter import make_feature_map
from paretoda.report.thumbnails import make_thumbnail

EVIL = "<script>alert(1)</script>"
CLASSES = ("cat", EVIL, "a-class-with-an-uncommonly-long-name-and-no-space-in-it")


def full() -> RunFacts:
    """A run with everything on its page."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    x = rng.normal(size=(90, 6)).astype(np.float32) + 3 * np.eye(3, 6)[y].astype(np.float32)
    image = make_thumbnail(rng.integers(255, size=(16, 16)).astype(np.uint8))
    cards = [Card(image, EVIL, CLASSES[place % 3], 0.5, CLASSES[place % 2]) for place in range(24)]
    tables = [
        Confusion("target (oracle)", CLASSES, ((30, 3, 0), (4, 20, 6), (0, 0, 27)), oracle=True),
        Confusion("held-out source", CLASSES, ((9, 0, 1), (0, 8, 2), (1, 0, 9))),
    ]
    pictures = Pictures(make_feature_map((x, y), (x[:60] + 1, y[:60]), CLASSES), cards, tables)
    history = [
        line(step, losses={"source": 1 / step, EVIL: sin(step)}, weights={"source": sin(step), EVIL: 1.0})
        for step in range(1, 121)
    ]
    history[50]["move"] = "descent"
    return replace(facts(), history=history, pictures=pictures, inputs={"source": f"/data/{EVIL}" + "long" * 60})


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages with a space")
    run, table = full(), Comparison("Target accuracy", ["", "oracle"], [["DANN", "71.5 ± 0.3"]], "3 seeds")
    texts = {
        "run": render_run_page(run),
        "demo": render_run_page(facts(), table),
        "runs": render_runs_page({"one": run, EVIL: facts(scores={})}, title="two"),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


NAMES = ("run", "demo", "runs")

DRAWN = """() => [...document.querySelectorAll('svg')].map(svg => {
    const box = svg.getBoundingClientRect();
    const shapes = [...svg.querySelectorAll('polyline, path:not(.at path), rect:not(.at rect), circle')];
    const seen = shapes.filter(s => { const b = s.getBoundingClientRect(), c = getComputedStyle(s);
        const ink = [c.stroke, c.fill].some(p => p !== 'none' && p !== 'rgba(0, 0, 0, 0)');
        return ink && c.display !== 'none' && b.width + b.height > 0; });
    return [svg.getAttribute('aria-label'), box.width, box.height, seen.length]; })"""

CONTRAST = """() => {
    const rgb = text => (text.match(/[\\d.]+/g) || []).map(Number);
    const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
    const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
        if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
    const found = [];
    for (const e of document.querySelectorAll('body *')) {
        const text = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
        if (!text || e.closest('.matrix') || e.tagName === 'title') continue;
        const style = getComputedStyle(e), ink = rgb(e.closest('svg') ? style.fill : style.color);
        const [a, b] = [light(ink), light(behind(e))].sort((x, y) => y - x);
        found.push([(a + .05) / (b + .05), e.tagName + '.' + e.className]);
    }
    return found; }"""


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_fetched_nothing_complains_and_every_figure_is_drawn(
    name: str, pages: dict[str, Path], opened: Any
) -> None:
    found = opened(pages[name])
    assert found.errors == []
    assert {url.partition(":")[0] for url in found.requests} <= {"file", "data"}
    assert [url for url in found.requests if url.startswith("file:")] == [pages[name].as_uri()]
    drawn = found.page.evaluate(DRAWN)
    assert len(drawn) >= {"run": 10, "demo": 6, "runs": 2}[name]
    for label, width, height, shapes in drawn:
        assert width > 200, label
        assert height > 20, label
        assert shapes > 0, label
    assert "<script>alert(" in found.page.inner_text("body")
    assert found.page.locator("script").count() == 0
    loaded = "[...document.images].every(image => image.naturalWidth > 0)"
    assert found.page.evaluate(loaded)


@pytest.mark.parametrize("name", NAMES)
def test_a_phone_needs_no_sideways_scrolling(name: str, pages: dict[str, Path], opened: Any) -> None:
    page = opened(pages[name], width=375, is_mobile=True, has_touch=True).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    wide = """() => [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') && !e.closest('svg'))
        .filter(e => e.getBoundingClientRect().right > 376).map(e => e.outerHTML.slice(0, 80))"""
    assert page.evaluate(wide) == []


@pytest.mark.parametrize("name", NAMES)
def test_text_is_readable_in_light_and_dark(name: str, pages: dict[str, Path], opened: Any) -> None:
    backs = {}
    for scheme in ("light", "dark"):
        page = opened(pages[name], color_scheme=scheme).page
        backs[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        contrasts = page.evaluate(CONTRAST)
        assert len(contrasts) > 50
        assert min(contrasts)[0] >= 4.5, min(contrasts)
    assert backs["light"] != backs["dark"]


def test_paper_has_everything_in_light_colours(pages: dict[str, Path], opened: Any) -> None:
    page = opened(pages["run"], width=700, color_scheme="dark").page
    on_screen = page.evaluate(DRAWN)
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert [row[0] for row in page.evaluate(DRAWN) if row[1] > 0 and row[3] > 0] == [row[0] for row in on_screen]
    for heading in page.locator("h2, h3").all():
        assert heading.is_visible()
    cut = "[...document.querySelectorAll('.scroll')].filter(e => getComputedStyle(e).overflow !== 'visible').length"
    assert page.evaluate(cut) == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    out = """() => [...document.querySelectorAll('.card *')].filter(e => e.getBoundingClientRect().right >
        e.closest('.card').getBoundingClientRect().right + 1).map(e => e.outerHTML.slice(0, 80))"""
    assert page.evaluate(out) == []
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_a_click_on_a_colour_hides_its_curve_without_a_script(pages: dict[str, Path], opened: Any) -> None:
    page = opened(pages["run"], java_script_enabled=False).page
    losses = page.locator("figure", has=page.locator("h3", has_text="Losses"))
    curve = losses.locator("polyline.c0").last
    assert curve.is_visible()
    losses.locator("input.k0").uncheck()
    assert not curve.is_visible()
    assert losses.locator("polyline.c1").last.is_visible()
    others = page.locator("figure", has=page.locator("h3", has_text="Weights"))
    assert others.locator("polyline.c0").last.is_visible()
