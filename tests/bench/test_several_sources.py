"""Suites with several sources, and rows that get one of them."""

from pathlib import Path

import numpy as np
import pytest

from paretoda.bench.contenders import ONLY_SOURCE, Contender, RunSpec, read_contenders
from paretoda.bench.execute import execute_run, keep_source
from paretoda.bench.loading import load_task, needs_files
from paretoda.bench.suites import SUITES, find_suite
from paretoda.errors import DataError
from paretoda.tasks import find_task
from paretoda.tasks.suites import Part, Suite, SuiteTask

TOML = Path(__file__).parents[2] / "benchmarks" / "contenders" / "sources.toml"


@pytest.fixture
def tiny(monkeypatch):
    """A suite of drawn digits with few samples."""
    task = find_suite("digits-sources").tasks["sans+serif-handwritten"]
    monkeypatch.setitem(SUITES, "tiny", Suite("Tiny.", {"one": task}))
    return task


def test_the_suites_have_several_sources_and_one_target_each():
    assert list(find_suite("pacs-sources").tasks) == ["CP-A", "AP-C", "AC-P"]
    for name in ("pacs-sources", "digits-sources"):
        for task in find_suite(name).tasks.values():
            assert len(task.sources) == 2
            assert task.target not in task.sources
    assert not needs_files(find_suite("digits-sources").tasks["sans+serif-handwritten"])
    assert needs_files(find_suite("pacs-sources").tasks["AC-P"])
    assert SuiteTask(Part("printed"), Part("handwritten")).sources == (Part("printed"),)


def test_every_row_of_the_table_is_a_contender_of_its_own():
    contenders = read_contenders(TOML, {})
    keys = [RunSpec("digits-sources", "sans+serif-handwritten", contender, 0).key for contender in contenders]
    assert len(set(keys)) == len(keys) >= 10


def test_a_row_may_have_one_source_only(tiny, tmp_path):
    loaded = load_task(find_task("classification"), tiny, None, tmp_path)
    assert [len(x) for x, _, _ in loaded.source] == [2100, 2100]
    assert not np.array_equal(loaded.source[0][0], loaded.source[1][0])
    assert keep_source(loaded, 2).source[0] is loaded.source[1][0]
    assert keep_source(loaded, None) is loaded
    with pytest.raises(DataError, match="only_source is 3, and this task has 2; give a number from 1 on"):
        keep_source(loaded, 3)
    settings = {"method": "source-only", "steps": 2, "select": "last", "evaluate_every": 2}
    rows = [
        execute_run(RunSpec("tiny", "one", Contender("one", {**settings, **more}), 0), None, tmp_path / "work")
        for more in ({}, {ONLY_SOURCE: 1}, {"sources": "pooled"})
    ]
    assert rows[1]["settings"][ONLY_SOURCE] == 1
    assert len({row["key"] for row in rows}) == 3
    assert all(0 <= row["accuracy"]["chosen"] <= 1 for row in rows)
