"""`paretoda adapt` end to end."""

import json
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from cli.conftest import CLASSES, Write
from cli.processes import SMALL, Ended, Inside, ended, rows_of, start, weights

from paretoda.api import adapt
from paretoda.io.toml import read_toml


def test_a_run_leaves_everything_and_says_what_it_did(finished: tuple[Path, Ended]) -> None:
    run, said = finished
    assert said.code == 0, said.err
    assert {path.name for path in run.iterdir()} == {
        *("config.toml", "environment.json", "metrics.jsonl", "checkpoint", "report.html"),
        *("model.safetensors", "model.json", "predictions.csv", "results.json", "metrics.csv", "README.md"),
    }
    rows = rows_of(run / "predictions.csv")
    assert len(rows) == 45
    assert {row["prediction"] for row in rows} <= set(CLASSES)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page

    assert len(said.out.splitlines()) == 1
    facts = said.last_line
    assert facts["run"] == str(run)
    assert facts["chosen_step"] in range(3, 21)
    assert set(facts) >= {"scores", "candidates", "moves", "sentences"}
    assert facts == {"run": str(run), **json.loads((run / "results.json").read_text())}

    assert "The batch size is lowered from 500" in said.err
    assert "By the mean rank of" in said.err
    assert f"paretoda predict '{run}' INPUT" in said.err
    steps = [line for line in said.err.splitlines() if line.startswith("training: ")]
    assert 9 <= len(steps) <= 11
    assert "source " in steps[0]
    assert "\x1b" not in said.err


def test_the_command_line_counts_before_the_file_and_the_file_before_the_defaults(
    finished: tuple[Path, Ended], data: tuple[Path, Path]
) -> None:
    config = read_toml(finished[0] / "config.toml")
    assert config["target"] == str(data[1])  # the command line's, not the file's
    assert (config["method"], config["target_loss"], config["seed"]) == ("dann", "tcm", 4)
    assert (config["source"], config["lr"], config["batch_size"]) == (str(data[0]), 0.02, 500)  # the file's
    assert (config["scheme"], config["momentum"]) == ("paretoda", 0.9)  # the defaults


def test_a_runs_own_config_repeats_it(finished: tuple[Path, Ended], tmp_path: Path, inside: Inside) -> None:
    run, _ = finished
    said = inside("adapt", "--config", run / "config.toml", "--out", tmp_path / "again", "--quiet")
    assert (said.code, said.out, said.err) == (0, "", "")
    assert weights(tmp_path / "again") == weights(run)
    assert (tmp_path / "again" / "config.toml").read_text() == (run / "config.toml").read_text()


def test_target_labels_are_never_read(data: tuple[Path, Path], write: Write, tmp_path: Path, inside: Inside) -> None:
    good = dict(np.load(data[1]))
    nonsense = {"y": np.array(["?"] * 45), "classes": np.zeros((2, 2))}
    for name, changes in (("with", {}), ("without", {"y": None, "classes": None}), ("wrong", nonsense)):
        target = write(f"target-{name}", **(good | changes))
        said = inside("adapt", "--source", data[0], "--target", target, "--out", tmp_path / name, *SMALL, "-q")
        assert said.code == 0, said.err
    assert weights(tmp_path / "with") == weights(tmp_path / "without") == weights(tmp_path / "wrong")


def test_an_earlier_run_is_replaced_only_on_demand_and_nothing_else_is_removed(
    finished: tuple[Path, Ended], data: tuple[Path, Path], tmp_path: Path, inside: Inside
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished[0], run)
    (run / "my notes.txt").write_text("mine")
    given = ("adapt", "--source", data[0], "--target", data[1], "--out", run, *SMALL)
    before = weights(run)
    assert "already has a run; use --resume" in inside(*given).sentence
    assert weights(run) == before
    assert inside(*given, "--overwrite").code == 0
    assert weights(run) != before
    assert (run / "my notes.txt").read_text() == "mine"


def test_an_interrupted_run_says_how_to_go_on_and_ends_with_the_bytes_of_an_uninterrupted_one(
    data: tuple[Path, Path], tmp_path: Path
) -> None:
    source, target = data
    out = tmp_path / "a run"
    settings = {
        "steps": 60,
        "batch_size": 16,
        "bottleneck": 8,
        "select": "im",
        "reference": False,
        "checkpoint_every": 1000,
    }
    options = (
        "--steps",
        60,
        "--batch-size",
        16,
        "--bottleneck",
        8,
        "--select",
        "im",
        "--no-reference",
        "--checkpoint-every",
        1000,
    )
    process = start("adapt", "--source", source, "--target", target, "--out", out, *options)
    _wait_for(out / "metrics.jsonl", lines=5)
    process.send_signal(signal.SIGINT)
    said = ended(process)
    assert said.code == 130, said
    assert "Traceback" not in said.err
    assert said.err.splitlines()[-1].startswith("paretoda: stopped after ")
    assert f"`paretoda adapt --out '{out}' --resume` continues" in said.err
    assert not (out / "model.safetensors").exists()
    taken = len((out / "metrics.jsonl").read_text().splitlines())
    assert 5 <= taken < 60

    resumed = ended(start("adapt", "--out", out, "--resume", "--json"))
    assert resumed.code == 0, resumed.err
    assert len((out / "metrics.jsonl").read_text().splitlines()) == 60
    adapt(source, target, tmp_path / "python", **settings)  # Python gives the same weights, too
    assert weights(out) == weights(tmp_path / "python")


def _wait_for(file: Path, lines: int) -> None:
    deadline = time.monotonic() + 300
    while not file.exists() or len(file.read_bytes().splitlines()) < lines:
        if time.monotonic() > deadline:
            pytest.fail(f"{file} did not grow")
        time.sleep(0.005)
