"""The commands of docs/regression.md run as printed."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from cli.processes import Inside

from paretoda.bench.contenders import plan, read_contenders
from paretoda.bench.suites import find_suite

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "regression.md").read_text(encoding="utf-8")
SMALL = ("--steps", 4, "--bottleneck", 8, "--quiet")


def test_the_commands_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("SOURCE", "TARGET", "LABELLED"):
        x = rng.normal(size=(60, 4))
        np.savez(tmp_path / f"{name}.npz", x=x, y=x.sum(axis=1))
    block = re.search(r"```\n(paretoda doctor.*?)```", PAGE, re.DOTALL)
    assert block is not None
    lines = [shlex.split(line)[1:] for line in block.group(1).splitlines()]
    assert [line[0] for line in lines] == ["doctor", "adapt", "predict", "evaluate", "report"]
    for line in lines:
        words = [f"{word}.npz" if (tmp_path / f"{word}.npz").exists() else word for word in line]
        end = Inside(capsys)(*words, *(SMALL if line[0] == "adapt" else ()))
        assert end.code == 0, end.err
    assert "Distribution of values" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("suite", ["turned-digits", "diabetes"])
def test_the_rows_of_the_table_can_be_run(suite):
    commands = re.findall(rf"`paretoda bench {suite} (?:--tasks \S+ )?--contenders (\S+) ", PAGE)
    assert len(commands) == 1
    contenders = read_contenders(ROOT / commands[0], {"task": "regression"})
    assert len(plan(suite, find_suite(suite), contenders, seeds=1)) == len(contenders) * len(find_suite(suite).tasks)
