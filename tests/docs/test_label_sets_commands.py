"""The commands of docs/label-sets.md run as they are printed."""

import re
import shlex
from pathlib import Path

import numpy as np

from paretoda.cli.app import app
from paretoda.cli.errors import run_app
from paretoda.run.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "label-sets.md"


def test_the_commands_run(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    y, z = np.arange(150) % 3, np.arange(120) % 4
    x, t = (5 * np.eye(8)[labels] + rng.normal(size=(len(labels), 8)) for labels in (y, z))
    classes = np.array(["ant", "bee", "cat", "dog"])
    np.savez(tmp_path / "S.npz", x=x, y=y, classes=classes[:3])
    np.savez(tmp_path / "T.npz", x=t, y=z, classes=classes)
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```\n(paretoda .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = [shlex.split(line)[1:] for line in block.group(1).splitlines()]
    assert [command[0] for command in commands] == ["adapt", "adapt", "evaluate"]
    for number, command in enumerate(commands):
        again = ["--steps", "30", *(["--overwrite"] if number else [])] if command[0] == "adapt" else []
        assert run_app(app, [*command, *again]) == 0
    assert "H-score:" in capsys.readouterr().out


def test_the_label_sets_of_the_page_are_those_of_the_setting():
    table = re.findall(r"^\| `(\w+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    for name in table:
        assert Settings(label_sets=name).label_sets == name
    assert len(table) == 3
