"""`predict`, `evaluate`, `doctor`, `list`, `demo` and the help."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli.conftest import CLASSES, Write
from cli.processes import Ended, Inside, command, environment, rows_of
from rich.console import Console

from paretoda.cli.console import Progress


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["adapt", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    call = [sys.executable, "-X", "importtime", "-m", "paretoda", *arguments]
    ended = subprocess.run(call, capture_output=True, text=True, env=environment(), check=True)
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "paretoda.cli.app" in imported
    assert not imported & {"torch", "numpy", "scipy", "sklearn", "matplotlib", "jinja2", "PIL", "safetensors"}
    assert ended.stdout


def test_predictions(finished: tuple[Path, Ended], data: tuple[Path, Path], tmp_path: Path, inside: Inside) -> None:
    run, _ = finished
    printed = inside("predict", run, data[1])
    assert printed.err == ""
    assert printed.out == (run / "predictions.csv").read_text(encoding="utf-8")
    file = tmp_path / "new folder" / "p.csv"
    said = inside("predict", run, data[1], "--out", file, "--refined", "--json")
    assert said.last_line["samples"] == 45
    assert said.last_line["out"] == str(file)
    assert len(said.out.splitlines()) == 1
    assert str(file) in said.err
    refined = rows_of(file)
    assert len(refined) == sum(said.last_line["counts"].values()) == 45
    assert file.read_text(encoding="utf-8") != printed.out  # other confidences
    rows = inside("predict", run, data[1], "--json").last_line["predictions"]
    assert rows[0] == dict(
        rows[0], **next(csv.DictReader(io.StringIO(printed.out))) | {"confidence": rows[0]["confidence"]}
    )


def test_evaluation_uses_labels_and_says_so(
    finished: tuple[Path, Ended], data: tuple[Path, Path], write: Write, inside: Inside
) -> None:
    run, _ = finished
    said = inside("evaluate", run, data[1])
    assert said.out.startswith("Labels were used")
    found = inside("evaluate", run, data[1], "--json").last_line
    rows = rows_of(run / "predictions.csv")
    labels = [CLASSES[y] for y in np.load(data[1])["y"]]
    right = [row["prediction"] == label for row, label in zip(rows, labels, strict=True)]
    assert found["accuracy"] == pytest.approx(np.mean(right))
    assert found["used_labels"]
    assert set(found["per_class"]) == set(CLASSES)
    assert found["mean_per_class"] == pytest.approx(np.mean(list(found["per_class"].values())))
    assert 0 <= found["ece"] <= 1
    assert sum(mistake["count"] for mistake in found["confusions"]) <= len(right) - sum(right)

    good = dict(np.load(data[1]))  # other numbers for the same names
    turned = write("turned", x=good["x"], y=(len(CLASSES) - 1) - good["y"], classes=np.array(CLASSES[::-1]))
    again = inside("evaluate", run, turned, "--json").last_line
    assert again == found


def test_the_doctor(data: tuple[Path, Path], write: Write, inside: Inside) -> None:
    fine = inside("doctor", "--source", data[0], "--target", data[1])
    assert fine.code == 0
    assert "0 errors" in fine.out
    assert "The target has labels; they are ignored" in " ".join(fine.out.split())
    few = write("few", count=12)
    ill = inside("doctor", "--source", write("one", y=np.zeros(60, int)), "--target", few, "--json")
    assert ill.code == 2
    facts = ill.last_line
    assert facts["errors"] == 2
    assert {finding["domain"] for finding in facts["findings"] if finding["severity"] == "error"} == {
        "source",
        "target",
    }
    assert "ERROR" in ill.err


def test_lists_have_a_line_for_every_name(inside: Inside) -> None:
    from paretoda.evaluation.validators import VALIDATORS
    from paretoda.models.backbones import NAMES
    from paretoda.objectives import ALIGNMENTS, GUIDES, TARGET_LOSSES
    from paretoda.schemes import SCHEMES

    tables = {"methods": ALIGNMENTS, "target-losses": TARGET_LOSSES, "guides": GUIDES, "schemes": SCHEMES}
    for what, names in {**tables, "validators": VALIDATORS, "backbones": NAMES}.items():
        said = inside("list", what, "--json")
        lines = said.last_line[what]
        assert set(lines) >= set(names)
        assert all(len(line) > 5 for line in lines.values())
        assert set(said.last_line["default"].split("+")) <= set(lines)
        assert "(default)" in " ".join(said.err.split())
    assert "--method dann+im means --method dann --target-loss im" in inside("list", "methods").out
    assert "'guides'" in inside("list", "gides").sentence


def test_a_terminal_gets_bars_and_the_facts_of_the_step() -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    progress = Progress(screen, shown=True)
    for step in range(1, 11):
        progress("training", step, 10, f"source {step} (x1)")
    progress.stop()
    assert isinstance(screen.file, io.StringIO)
    shown = screen.file.getvalue()
    assert "training" in shown
    assert "10/10" in shown
    assert "source 10 (x1)" in shown


@pytest.mark.slow
def test_the_demo_prints_oracle_accuracies_and_writes_a_page(tmp_path: Path) -> None:
    said = command("demo", "--out", tmp_path / "demo", "--seeds", 1, "--steps", 5)
    assert said.code == 0, said.err
    assert said.out.count("oracle") >= 2
    for way in ("source-only", "DANN", "DANN + TCM, plain sum", "DANN + TCM + propagation, ParetoDA"):
        assert way in said.out
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert "Target accuracy" in page
    assert "oracle" in page
    runs = json.loads((tmp_path / "demo" / "results.json").read_text())["runs"]
    assert len(runs) == 4
    assert all(0 <= run["oracle_accuracy_last"] <= 1 for run in runs)
