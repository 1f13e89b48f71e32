"""Whatever users call their classes, files, runs and contenders: on a page it is text, never a tag or a script."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from report.test_bench_page import row
from report.test_page import facts, line

from paretoda.report.bench_page import render_bench_page
from paretoda.report.confusion import Confusion
from paretoda.report.facts import Card, Pictures, RunFacts
from paretoda.report.label_maps import MapCard, Overlap
from paretoda.report.page import render_run_page, render_runs_page
from paretoda.report.scatter import make_feature_map
from paretoda.report.thumbnails import make_thumbnail
from paretoda.studies.page import Grid, Page, Section

EVIL = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "</title></style><svg onload=\"document.title='owned'\">",
    "' onmouseover='document.title=1' x='",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:document.title='owned'",
    "<!--",
    "&lt;b&gt;",
)


def run() -> RunFacts:
    """A run in which everything that has a name has a hostile one."""
    rng = np.random.default_rng(0)
    count = len(EVIL)
    y = np.arange(40) % count
    x = rng.normal(size=(40, 6)).astype(np.float32)
    image = make_thumbnail(rng.integers(255, size=(16, 16)).astype(np.uint8))
    table = tuple(tuple(int(v) for v in r) for r in rng.integers(0, 5, (count, count)))
    pictures = Pictures(
        make_feature_map((x, y), (x + 1, y), EVIL),
        [Card(image, name, name, 0.5, EVIL[0]) for name in EVIL],
        [Confusion(EVIL[1], EVIL, table, oracle=True), Confusion("held-out source", EVIL, table)],
        [MapCard(EVIL[1], image, image, image, 0.5)],
        [Overlap(EVIL[2], EVIL, ["#fff"] * count, [0.5] * count, 0.5, False)],
    )
    history = [line(step, losses=dict.fromkeys(EVIL[:3], 1.0), weights=dict.fromkeys(EVIL[:3], 1.0)) for step in (1, 2)]
    history = [{**one, "move": EVIL[0], "cosines": [[1.0] * 3] * 3, "guide_cosines": [0.1] * 3} for one in history]
    return replace(
        facts(),
        title=EVIL[2],
        settings={**facts().settings, EVIL[0]: EVIL[1], "method": EVIL[1], "options": EVIL},
        environment=dict(zip(EVIL, EVIL, strict=True)),
        history=history,
        sentences=EVIL,
        predictions=[(name, name, 0.5) for name in EVIL],
        inputs={EVIL[0]: EVIL[1]},
        scores=dict.fromkeys(EVIL, 0.1),
        candidates=[{"step": 1, **dict.fromkeys(EVIL, 0.1)}, {"step": 2, **dict.fromkeys(EVIL, 0.2)}],
        pictures=pictures,
    )


def bench() -> str:
    names = [(name, task, seed) for name in EVIL for task in EVIL[:3] for seed in (0, 1)]
    rows = [row(*key, 0.5 + 0.01 * place % 0.4, settings={EVIL[0]: EVIL[1]}) for place, key in enumerate(names)]
    rows.append({**row(EVIL[1], EVIL[2], 7, None), "error": EVIL[0]})
    return render_bench_page(rows, title=EVIL[2], command=EVIL[1])


def study(folder: Path) -> str:
    (folder / "f.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    grid = Grid(EVIL, [EVIL, EVIL], frozenset({(0, 0)}))
    sections = [Section(EVIL[0], EVIL, grid, "f.svg"), Section(EVIL[1], grid=replace(grid, words=True))]
    return Page(EVIL[2], EVIL, sections, dict(zip(EVIL, EVIL, strict=True)), EVIL).html(folder)


def pages(folder: Path) -> dict[str, str]:
    """All kinds of pages."""
    return {
        "run": render_run_page(run()),
        "runs": render_runs_page({name: run() for name in EVIL}, title=EVIL[2]),
        "bench": bench(),
        "study": study(folder),
    }


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(str(text))  # a study gives Markup, whose parts would be escaped again
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("kind", ["run", "runs", "bench", "study"])
def test_a_name_is_text_and_nothing_else(kind: str, tmp_path: Path) -> None:
    page = Tags(pages(tmp_path)[kind])
    found = {tag for tag, _ in page.tags}
    assert not found & {"script", "iframe", "object", "embed", "form", "base"}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith(("data:", "#")), (tag, attributes)
    shown = [text for text in EVIL if text not in page.text]
    assert not shown, "every name is on the page, as it is written"
    policy = [a for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy, "and if one were not escaped, the browser would still run nothing"
    assert "default-src 'none'" in (policy[0]["content"] or "")
