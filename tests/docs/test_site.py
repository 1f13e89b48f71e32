"""The documentation site builds without a warning, asks the network for nothing, and says what the code says."""

import html
import importlib.util
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from paretoda.run.settings import SETTINGS, Settings
from paretoda.schemes import SCHEMES

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "site"
RESOURCES = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


def load(name, monkeypatch):
    """A module of docs/site, which is no package."""
    monkeypatch.syspath_prepend(str(SITE))
    spec = importlib.util.spec_from_file_location(f"site_{name}", SITE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / "mkdocs.yml"), "-d", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=quiet, check=False)
    assert done.returncode == 0, done.stderr
    return folder


class Page(HTMLParser):
    """What a page loads, where its links lead, and its ids."""

    def __init__(self, file):
        super().__init__()
        self.loaded, self.ids, self.links = [], set(), []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in RESOURCES and given.get(RESOURCES[tag]):
            self.loaded.append(given[RESOURCES[tag]])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if given.get("id"):
            self.ids.add(given["id"])


@pytest.fixture(scope="module")
def pages(site):
    return {file: Page(file) for file in site.rglob("*.html")}


def test_no_page_loads_anything_from_elsewhere(site, pages):
    assert len(pages) > 50
    for file, page in pages.items():
        for url in page.loaded:
            assert url.startswith("data:image/png") or not re.match(r"^([a-z]+:|//)", url), f"{file.name} loads {url}"
        assert "fonts.googleapis" not in file.read_text(encoding="utf-8")
    for sheet in [*site.rglob("assets/site.css"), *site.rglob("*.svg")]:
        assert not re.search(r"@import|url\(\s*[\"']?https?:|href=[\"']https?:", sheet.read_text(encoding="utf-8")), (
            sheet
        )


def test_every_link_inside_the_site_leads_to_a_page_and_a_heading(pages):
    for file, page in pages.items():
        for link in set(page.links):
            target, _, anchor = link.partition("#")
            if re.match(r"^[a-z]+:", link) or file.name == "404.html":
                continue
            goal = (file.parent / target).resolve() if target else file
            assert goal.exists(), f"{file.name} links to {link}"
            if anchor and goal in pages and not anchor.startswith("__"):
                assert anchor in pages[goal].ids, f"{file.name} links to {link}"


def text_of(file):
    return html.unescape(re.sub(r"<[^>]*>", "", file.read_text(encoding="utf-8")))


def test_the_page_of_settings_tells_all_of_them(site):
    told = text_of(site / "reference" / "settings.html")
    for name, field in Settings.model_fields.items():
        assert SETTINGS[name].option in told
        assert field.description.replace("`", "") in told, name


def test_the_reference_has_what_is_public(pages):
    listed = {anchor for file, page in pages.items() if file.parent.name == "reference" for anchor in page.ids}
    import paretoda

    homes = {
        "MicroBatches": "gradients.micro_batches",
        "NonFiniteError": "gradients.report",
        "Report": "gradients.report",
    }
    homes |= {"ParetoDAClassifier": "estimator.estimators", "ParetoDATransformer": "estimator.estimators"}
    homes |= {"backward": "gradients.backward"}
    tables = {name for name in paretoda.__all__ if name.isupper()}
    for name in set(paretoda.__all__) - {"__version__", "schemes"} - tables:
        home = f"paretoda.{homes[name]}" if name in homes else getattr(paretoda, name).__module__
        assert f"{home}.{name}" in listed
    for scheme in SCHEMES.values():
        assert f"{scheme.__module__}.{scheme.__name__}" in listed


def test_lists_and_tables_begin_without_a_blank_line_as_on_github(site, monkeypatch):
    hooks = load("hooks", monkeypatch)
    told = "Text:\n- one\n  more\n- two\n\n```\nx\n- y\n```\nWords\n| a |\n|---|\n| b |\n1. no\n"
    wanted = "Text:\n\n- one\n  more\n- two\n\n```\nx\n- y\n```\nWords\n\n| a |\n|---|\n| b |\n\n1. no\n"
    assert hooks.with_blank_lines(told) == wanted
    assert "<li>" in (site / "results-archive.html").read_text(encoding="utf-8").split("What it says:")[1][:60]


def test_the_figures_are_those_of_the_script(monkeypatch):
    figures = load("figures", monkeypatch)
    for name, figure in figures.FIGURES.items():
        stored = (ROOT / "docs" / "assets" / name).read_text(encoding="utf-8")
        assert figure() == stored, f"{name} is old: python docs/site/figures.py"


def test_the_notebook_is_stored_with_its_outputs_and_without_places_and_times(monkeypatch):
    notebook = load("notebook", monkeypatch)
    stored = json.loads(notebook.NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell["outputs"] for cell in cells)
    page = notebook.page_of(stored)
    assert not re.search(r"/tmp/|/home/|/root/|Traceback|\d\d:\d\d:\d\d", re.sub(r"base64,[^\"]*", "", page))


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch):
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    notebook = load("notebook", monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    stored = json.loads(notebook.NOTEBOOK.read_text(encoding="utf-8"))
    done = notebook.executed(stored, tmp_path)

    def kinds(book):
        return [[sorted(o.get("data", {"text": 0})) for o in cell.get("outputs", ())] for cell in book["cells"]]

    assert kinds(done) == kinds(stored)
    assert [cell["source"] for cell in done["cells"]] == [cell["source"] for cell in stored["cells"]]
