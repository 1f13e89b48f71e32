"""Hostile names in a real browser: nothing of theirs runs, is fetched, or is even tried."""

from pathlib import Path
from typing import Any

import pytest
from report.test_hostile_names import EVIL, pages


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    for name, text in pages(folder).items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
        # The same without the policy, which would hide that a name got through.
        bare = text.replace("Content-Security-Policy", "X-Nothing")
        (folder / f"{name}-bare.html").write_text(bare, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["run", "runs", "bench", "study"])
@pytest.mark.parametrize("kind", ["", "-bare"])
def test_no_script_of_a_name_runs(name: str, kind: str, written: Path, opened: Any) -> None:
    file = written / f"{name}{kind}.html"
    found = opened(file)
    assert found.errors == [], "a script that the policy stopped would complain here"
    assert found.page.title() == EVIL[2], "and one that ran would have changed this"
    assert found.page.locator("script, iframe, object, embed").count() == 0
    assert {url for url in found.requests if not url.startswith("data:")} == {file.as_uri()}
    handlers = "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => n.startsWith('on'))"
    assert found.page.evaluate(handlers) == []
    assert EVIL[0] in found.page.inner_text("body")
