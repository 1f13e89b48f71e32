"""Where things live: the engine knows no task, every old path leads somewhere, and the map of the rooms is complete."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import paretoda
from paretoda._moved import MOVED

PACKAGE = Path(paretoda.__file__).parent
ROOT = Path(__file__).parents[1]
TASKS = ("tasks/", "objectives/segmentation/", "data/segmentation/", "models/segmentation/")
"""The only rooms that know what segmentation is."""
TABLE_OF_SETTINGS = "run/settings.py"
"""It says of each setting which task reads it, and nothing else there depends on the task."""


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def docstrings(tree):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, kinds) and ast.get_docstring(node)}


def test_nothing_outside_the_tasks_asks_which_task_it_is():
    found = []
    for name, tree in modules():
        if name.startswith(TASKS) or name == TABLE_OF_SETTINGS:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value == "segmentation" and id(node) not in docstrings(tree):
                found.append(f"{name}:{node.lineno} says 'segmentation'")
            names = {ast.Name: "id", ast.Attribute: "attr", ast.alias: "name", ast.ClassDef: "name"}
            named = getattr(node, names[type(node)]) if type(node) in names else ""
            if named.startswith("Scene"):
                found.append(f"{name}:{getattr(node, 'lineno', 0)} names {named}")
    assert found == []


def test_the_table_of_settings_asks_for_no_task():
    tree = dict(modules())[TABLE_OF_SETTINGS]
    asked = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and "segmentation" in ast.dump(node).lower() and "Attribute" in ast.dump(node)
    ]
    assert asked == []


@pytest.mark.parametrize("old", sorted(MOVED))
def test_an_old_import_path_leads_to_the_new_module_and_says_so(old):
    code = f"import warnings, sys; warnings.simplefilter('error'); import paretoda\ntry: import {old}\n"
    code += "except DeprecationWarning as warning: print(warning)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "is now paretoda." in said
    code = f"import warnings, sys; warnings.simplefilter('ignore'); import {old}; print(sys.modules[{old!r}].__name__)"
    new = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert new == MOVED[old]


def test_the_old_name_of_a_run_still_works():
    with pytest.warns(DeprecationWarning, match=r"is now paretoda\.Run"):
        assert paretoda.SceneRun is paretoda.Run


def test_every_public_name_can_be_imported():
    for name in paretoda.__all__:
        assert getattr(paretoda, name) is not None


def test_the_map_names_every_room_and_only_files_that_exist():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert {room for room in rooms if f"`{room}/`" not in page} == set()
    named = {part for part in page.split("`") if part.endswith(".py") and " " not in part}
    assert {name for name in named if not (PACKAGE / name).exists() and not (ROOT / name).exists()} == set()
