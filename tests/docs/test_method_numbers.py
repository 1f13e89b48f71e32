"""The numbers in docs/methods are those of a bench: means over tasks and seeds, what is missing told."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from paretoda.bench.suites import find_suite
from paretoda.io.toml import read_toml
from paretoda.objectives import ALIGNMENTS, TARGET_LOSSES
from paretoda.schemes import SCHEMES
from paretoda.training.strategies import STRATEGIES

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "methods"
TASKS = list(find_suite("comparison").tasks)


@pytest.fixture
def numbers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import method_numbers

    return method_numbers


def line(name, accuracy, task=TASKS[0], seed=0, **more):
    facts = {"key": f"{name} {task} {seed} {more}", "suite": "comparison", "variant": {}, "settings": {}}
    accuracies = {"chosen": accuracy, "last": 0.0}
    return {**facts, "name": name, "task": task, "seed": seed, "accuracy": accuracies, **more}


def store(folder, lines):
    (folder / "runs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return folder


def every(name, accuracy, seeds=(0, 1)):
    """Accuracy + 0.1 for the second task, + 0.02 for seed 1."""
    return [line(name, accuracy + 0.1 * (t == TASKS[1]) + 0.02 * s, t, s) for t in TASKS for s in seeds]


def test_sections_and_contenders_know_each_other(numbers):
    told = {name for rows in numbers.SECTIONS.values() for name in (*rows.shown.values(), *rows.beside)}
    real = set(read_toml(ROOT / "benchmarks" / "contenders" / "methods.toml"))
    assert told - {"source-only, paretoda"} == real
    assert set(numbers.SECTIONS) <= {*ALIGNMENTS, *TARGET_LOSSES, *SCHEMES, *STRATEGIES}


def test_a_section_tells_means_over_seeds_and_tasks(numbers, tmp_path):
    lines = [*every("dann", 0.5), *every("dann, paretoda", 0.6), *every("source-only", 0.4)]
    lines += [line("dann", 0.9, suite="confirmation"), line("mdd", 0.9)]
    found = numbers.measured(store(tmp_path, lines))
    told = numbers.sentence(numbers.SECTIONS["dann"], found)
    assert told.startswith(
        "Six tasks, chosen without labels, mean of 2 seeds: alone 52.7, under `paretoda` with TCM and propagation 62.7 "
        "(source-only 42.7). By task (in this order, in brackets as above): "
    )
    assert f"{TASKS[0]} 51.0, 61.0 (41.0); {TASKS[1]} 61.0, 71.0 (51.0); " in told
    assert told.count(";") == 5
    assert numbers.sentence(numbers.SECTIONS["cdan"], found) == ""


def test_what_is_missing_is_told_and_compared_on_equal_tasks(numbers, tmp_path):
    lines = [each for each in every("dann+mcc", 0.5) if each["task"] != TASKS[1]]
    lines += [*every("dann", 0.5, [0]), *every("source-only", 0.4), line("dann+mcc, paretoda", 0.0, error="died")]
    told = numbers.sentence(numbers.SECTIONS["mcc"], numbers.measured(store(tmp_path, lines)))
    assert told.startswith(
        "Five tasks of six, chosen without labels, mean of 1 to 2 seeds: "
        "with DANN, summed 51.0 (dann 50.0, source-only 41.0)"
    )
    assert TASKS[1] not in told


def test_of_several_rates_the_label_free_scores_choose(numbers, tmp_path):
    lines = [
        line("source-only", accuracy, variant={"lr": lr}, scores=dict.fromkeys(("im", "mixval", "mano"), lr))
        for lr, accuracy in ((0.1, 0.3), (0.03, 0.9))
    ]
    found = numbers.measured(store(tmp_path, lines))
    assert found == {"source-only": {TASKS[0]: [pytest.approx(30)]}}


def test_the_pages_are_rewritten_once_and_emptied_again(numbers, tmp_path, monkeypatch, capsys):
    bench, pages = tmp_path / "bench", tmp_path / "pages"
    bench.mkdir()
    pages.mkdir()
    store(bench, [*every("dann", 0.5), *every("source-only", 0.4)])
    for page in PAGES.glob("*.md"):
        (pages / page.name).write_text(numbers.filled(page.read_text(encoding="utf-8"), {}), encoding="utf-8")
    empty = {page.name: page.read_text(encoding="utf-8") for page in pages.glob("*.md")}
    monkeypatch.setattr(sys, "argv", ["method_numbers.py", str(bench), "--pages", str(pages)])
    said = []
    for _ in range(2):
        numbers.main()
        said.append(capsys.readouterr().out)
    assert "alignments.md: rewritten" in said[0]
    assert "rewritten" not in said[1]
    page = (pages / "alignments.md").read_text(encoding="utf-8")
    changed = Counter(page.splitlines()) - Counter(empty["alignments.md"].splitlines())
    assert len(changed) == 2
    assert "<!-- numbers dann -->\nSix tasks, " in page
    assert "<!-- numbers cdan -->\n<!-- /numbers -->" in page
    assert numbers.filled(page, {}) == empty["alignments.md"]
