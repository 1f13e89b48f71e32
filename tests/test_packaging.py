"""The wheel has every file of the package and nothing else; the sdist has what builds and tests it."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = "from hatchling import build; print(build.build_{}({!r}))"


def built(kind: str, folder: Path) -> Path:
    """The archive, by the backend itself: no isolation, so nothing is downloaded."""
    pytest.importorskip("hatchling")
    code = BUILD.format(kind, str(folder))
    end = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return folder / end.stdout.split()[-1]


def ours(folder: str) -> set[str]:
    """Files as they are here, without what Python leaves behind."""
    found = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in found if path.suffix != ".pyc"}


def test_the_wheel_has_every_file_of_the_package(tmp_path):
    with zipfile.ZipFile(built("wheel", tmp_path)) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        (metadata,) = [name for name in wheel.namelist() if name.endswith("METADATA")]
        text = wheel.read(metadata).decode()
    assert {f"src/{name}" for name in names} == ours("src")
    assert {"paretoda/py.typed", "paretoda/run/presets.toml", "paretoda/report/templates/style.css"} <= names
    assert "Name: paretoda" in text
    assert "Provides-Extra: track" in text


def test_the_sdist_has_what_builds_and_tests_it(tmp_path):
    with tarfile.open(built("sdist", tmp_path)) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames()}
    for folder in ("src", "tests", "docs", "examples", "benchmarks"):
        assert ours(folder) <= names, sorted(ours(folder) - names)[:5]
    files = ("pyproject.toml", "Makefile", "constraints.txt", "constraints-lowest.txt", "README.md", "LICENSE")
    assert set(files) <= names
    assert not [name for name in names if name.startswith((".venv", "dist", "build/", ".git/"))]


def test_the_lowest_versions_are_those_that_the_project_allows():
    """`make test-lowest` tests what pyproject.toml promises."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.DOTALL | re.MULTILINE)[1]
    allowed = dict(re.findall(r'"([\w-]+)>=([\d.]+)"', block))
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    assert set(allowed) - set(pinned) == set()
    for name in set(allowed) - {"torch"}:
        assert (pinned[name] + ".").startswith(allowed[name] + "."), name


def test_every_dependency_is_imported_by_the_package():
    """What only an extra needs is no dependency of everybody."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]}
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    modules = set(re.findall(r"^\s*(?:import|from) (\w+)", text, re.MULTILINE))
    imported = {name for module in modules for name in packages_distributions().get(module, ())}
    assert declared <= {name.lower() for name in imported}


def _planned(folder: Path, target: str) -> list[str]:
    """What `make TARGET` would install, in order."""
    plan = subprocess.run(["make", "-n", target], cwd=folder, capture_output=True, text=True, check=True).stdout
    return re.findall(r"pip install .* -e (\S+)", plan)


def test_the_demo_installs_no_development_tools_and_the_tests_add_them(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    assert _planned(tmp_path, "demo") == ["."]
    assert _planned(tmp_path, "test") == [".", '".[dev]"']
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "package-installed").touch()
    assert _planned(tmp_path, "demo") == []
    assert _planned(tmp_path, "test") == ['".[dev]"']
    (tmp_path / ".venv" / "tools-installed").touch()
    assert _planned(tmp_path, "demo") == _planned(tmp_path, "test") == []
