"""The pages of docs/methods say what the code does: names, options, defaults, commands, links, numbers."""

import inspect
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
import typer

from paretoda.bench.contenders import cross, plan, tune_weights
from paretoda.bench.suites import find_suite
from paretoda.cli.app import app
from paretoda.cli.errors import run_app
from paretoda.cli.options import read_settings, split
from paretoda.data import make_pair
from paretoda.objectives import ALIGNMENTS, TARGET_LOSSES
from paretoda.run.build import build_step
from paretoda.run.settings import SETTINGS
from paretoda.run.train import train
from paretoda.schemes import SCHEMES
from paretoda.tasks import find_task
from paretoda.tasks.classification.build import make_pair_settings
from paretoda.tasks.settings import make_settings
from paretoda.training.strategies import STRATEGIES

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "methods"
TABLES = {"alignments": ALIGNMENTS, "target-losses": TARGET_LOSSES, "schemes": {**SCHEMES, **STRATEGIES}}
GIVEN = ("features", "classes", "sources")
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
    headings = {name: anchors(f"## `{name}`\n").pop() for table in TABLES.values() for name in table}
    assert links == [(name, page, headings[name]) for page, table in TABLES.items() for name in table]


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
    return read_settings({name: given[name] for name in SETTINGS})


@pytest.fixture(scope="module")
def pair():
    x, y = features(45, 0.0)
    return make_pair((x, y, CLASSES), features(48, 0.5)[0], make_pair_settings(make_settings({"batch_size": 9})))


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
    step = build_step(find_task(settings.task), settings, pair, torch.device("cpu"))
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
        assert run_app(app, [*words(line), *(small if line.startswith("adapt") else [])]) == 0
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
