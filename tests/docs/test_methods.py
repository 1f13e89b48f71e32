"""The pages of docs/methods say what the code does: names, options, defaults, commands, links, numbers."""

import inspect
import json
import re
import shlex
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
import typer

from paretoda.bench.contenders import cross, plan
from paretoda.bench.suites import find_suite
from paretoda.bench.tuning import tune_weights
from paretoda.cli.app import app
from paretoda.cli.benching import split
from paretoda.cli.errors import exit_code
from paretoda.cli.options import SETTINGS, given_settings
from paretoda.data import make_pair
from paretoda.job.build import make_step, pair_settings
from paretoda.job.config_file import read_toml
from paretoda.job.settings import make_settings
from paretoda.job.training import train
from paretoda.objectives import ALIGNMENTS, TARGET_LOSSES
from paretoda.schemes import SCHEMES
from paretoda.training.strategies import STRATEGIES

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "methods"
TABLES = {"alignments": ALIGNMENTS, "target-losses": TARGET_LOSSES, "schemes": {**SCHEMES, **STRATEGIES}}
GIVEN = ("features", "classes")
BASE = "adapt --source S.npz --target T.npz --out RUN "
PROGRAM = typer.main.get_command(app)
CLASSES = ("ant", "bee", "cat")


def text(page):
    return (PAGES / f"{page}.md").read_text(encoding="utf-8")


def sections(page):
    """Name -> text, of the headings that are a name in backquotes."""
    methods = re.sub(r"^## (?!`).*?(?=^## `|\Z)", "", text(page), flags=re.M | re.S)
    parts = re.split(r"^## `(\S+)`$", methods, flags=re.M)
    return list(zip(parts[1::2], parts[2::2], strict=True))


ALL = [pytest.param(page, name, body, id=name) for page in TABLES for name, body in sections(page)]


def features(count, shift):
    rng = np.random.default_rng(count)
    y = np.arange(count) % len(CLASSES)
    return (2 * np.eye(6)[y] + rng.normal(size=(count, 6)) + shift).astype(np.float32), y


@pytest.mark.parametrize("page", TABLES)
def test_every_name_has_one_section_and_no_section_another_name(page):
    assert [name for name, _ in sections(page)] == list(TABLES[page])


def test_the_index_has_one_line_for_every_name():
    links = re.findall(r"^\| \[`(\S+)`\]\((\S+)\.md#(\S+)\) \| .+ \|$", text("index"), flags=re.M)
    assert links == [(name, page, name) for page, table in TABLES.items() for name in table]


@pytest.mark.parametrize(("name", "body"), [pytest.param(*each.values[1:], id=each.id) for each in ALL])
def test_a_section_is_whole_and_short(name, body):
    for wanted in ("```\n", "**When.**", "Options: ", "Command: `", f"<!-- numbers {name} -->\n"):
        assert body.count(wanted) >= 1 or (wanted == "```\n" and name == "none"), wanted
    assert body.rstrip().endswith("<!-- /numbers -->")
    assert 6 <= len([line for line in body.splitlines() if line.strip()]) <= 24


def shown(value):
    """A default as the pages write it: as `--options` takes it."""
    if isinstance(value, str):
        return value
    return json.dumps(list(value) if isinstance(value, tuple) else value)


@pytest.mark.parametrize(("page", "name", "body"), ALL)
def test_the_options_and_their_defaults_are_those_of_the_code(page, name, body):
    (line,) = re.findall(r"^Options: (.*)\.$", body, flags=re.M)
    told = dict(re.findall(r"`(\w+)` \((.*?)\)(?=,|$)", line))
    assert (line == "none") == (not told)
    factory = TABLES[page][name]
    known = {} if factory is None else inspect.signature(factory).parameters
    real = {key: entry.default for key, entry in known.items() if key not in GIVEN}
    assert list(told) == list(real)
    for key, default in real.items():
        if isinstance(default, float):
            assert float(told[key]) == default
        else:
            assert told[key] == shown(default)


def words(line):
    return shlex.split(line, comments=True)


def parsed(arguments):
    """What the command line makes of the arguments, without doing it: the command's name and its parameters."""
    command = PROGRAM.commands[arguments[0]]
    return arguments[0], command.make_context(arguments[0], arguments[1:]).params


def whole_commands():
    for page in ("index", *TABLES):
        fenced = re.findall(r"^paretoda (.*)$", text(page), flags=re.M)
        inline = re.findall(r"`paretoda ([^\s`]+ [^`\n]*)`", text(page))
        yield from [*fenced, *inline]


@pytest.mark.parametrize("line", dict.fromkeys(whole_commands()))
def test_every_whole_command_is_understood(line):
    name, given = parsed(words(line))
    if name == "adapt":
        make_settings(settings_of(given))
    if name == "bench":
        contenders = cross(split(given["methods"]), split(given["target_losses"]), split(given["schemes"]))
        specs = plan(given["suite"], find_suite(given["suite"]), contenders, seeds=1, tasks=split(given["tasks"]))
        assert len(tune_weights(specs, given["tune_weights"])) == 9


def settings_of(given):
    return given_settings({setting.name: given[setting.name] for setting in SETTINGS})


@pytest.fixture(scope="module")
def pair():
    x, y = features(45, 0.0)
    return make_pair((x, y, CLASSES), features(48, 0.5)[0], pair_settings(make_settings({"batch_size": 9})))


@pytest.mark.parametrize(("page", "name", "body"), ALL)
def test_the_command_of_a_section_trains_with_it(page, name, body, pair):
    (flags,) = re.findall(r"^Command: `(.*)`$", body, flags=re.M)
    given = settings_of(parsed(words(BASE + flags))[1])
    settings = make_settings({**given, "steps": 2, "bottleneck": 8, "select": "last", "batch_size": 9})
    taken = {
        "alignments": [settings.method],
        "target-losses": settings.target_loss.split("+"),
        "schemes": [settings.scheme],
    }
    assert name in taken[page]
    history = []
    step = make_step(settings, pair, torch.device("cpu"))
    train(settings, pair, step, after=[lambda taken, report: history.append((taken, report.move))])
    assert [taken for taken, _ in history] == [1, 2]


def test_a_front_is_trained_and_asked_as_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file, count, shift in (("S", 45, 0.0), ("T", 48, 0.5), ("NEW", 6, 0.5), ("LABELLED", 6, 0.5)):
        x, y = features(count, shift)
        np.savez(f"{file}.npz", x=x, y=y, classes=np.array(CLASSES))
    lines = re.findall(r"^paretoda (.*)$", dict(sections("schemes"))["hypernetwork"], flags=re.M)
    assert [line.split()[0] for line in lines] == ["adapt", "predict", "evaluate"]
    small = ["--steps", "2", "--select", "last", "--no-reference", "--quiet"]
    for line in lines:
        assert exit_code(app, [*words(line), *(small if line.startswith("adapt") else [])]) == 0
    assert len(Path("predictions.csv").read_text().splitlines()) == 7


def anchors(page):
    """Of the page's headings, as they are made on GitHub."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page, flags=re.M | re.S), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", ["index", *TABLES])
def test_links_lead_to_files_and_headings(page):
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text(page)):
        file, _, anchor = target.partition("#")
        goal = (PAGES / file) if file else PAGES / f"{page}.md"
        assert goal.exists(), target
        assert not anchor or anchor in anchors(goal.read_text(encoding="utf-8")), target


# The numbers: benchmarks/method_numbers.py

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
    assert set(numbers.SECTIONS) <= {name for table in TABLES.values() for name in table}


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
        line("source-only", accuracy, variant={"lr": lr}, scores=dict.fromkeys(("im", "mixval", "dev"), lr))
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
