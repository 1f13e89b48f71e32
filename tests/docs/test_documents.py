"""Every Python example in the documents runs."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import mlflow_stand_in
import pytest
import torch

from paretoda.objectives import ALIGNMENTS
from paretoda.schemes import SCHEMES
from paretoda.tasks import TASKS

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
SLOW = {"lightning.md": pytest.mark.slow}
"""Lightning alone takes ten seconds to import."""
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.DOTALL | re.MULTILINE)


def examples():
    for page in PAGES:
        for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8"))):
            lines = match.group(2).splitlines()
            code = "\n".join(line[len(match.group(1)) :] for line in lines)
            yield pytest.param(code, id=f"{page.relative_to(ROOT)}:{number}", marks=SLOW.get(page.name, ()))


@pytest.fixture(autouse=True)
def tables_as_they_were():
    """Examples may add their own parts; other tests count what is in the tables."""
    kept = [(table, dict(table)) for table in (ALIGNMENTS, SCHEMES, TASKS)]
    yield
    for table, before in kept:
        table.clear()
        table.update(before)


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*deprecated:FutureWarning")  # Lightning's own
@pytest.mark.parametrize("code", list(examples()))
def test_the_example_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    if find_spec("mlflow") is None:
        monkeypatch.setitem(sys.modules, "mlflow", mlflow_stand_in)
    exec(compile(code, "example", "exec"), {"__name__": "__example__"})


def test_links_inside_the_documents_lead_somewhere():
    for page in PAGES:
        prose = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", prose):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
