"""A run that is not what it should be gives one sentence, exit code 2, and runs nobody's code."""

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.conftest import Write
from cli.processes import Ended, Inside
from PIL import Image


@pytest.fixture
def copied(finished: tuple[Path, Ended], tmp_path: Path) -> Path:
    shutil.copytree(finished[0], tmp_path / "copied")
    return tmp_path / "copied"


def test_resuming_what_cannot_be_resumed(copied: Path, inside: Inside) -> None:
    given = ("adapt", "--out", copied, "--resume", "--quiet")
    assert "is finished" in inside(*given).sentence
    assert "keeps its settings; leave out lr" in inside(*given, "--lr", "0.1").sentence
    (copied / "model.safetensors").unlink()
    config = copied / "config.toml"
    config.write_text(config.read_text().replace("bottleneck = 8", "bottleneck = 9"))
    assert "of another architecture" in inside(*given).sentence
    for checkpoint in (copied / "checkpoint").glob("*.pt"):
        checkpoint.write_bytes(pickle.dumps(Trap(copied / "sprung")))
    assert "no checkpoint can be read" in inside(*given).sentence
    assert not (copied / "sprung").exists()


class Trap:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_pickle_dressed_up_as_a_model_is_not_opened(copied: Path, data: tuple[Path, Path], inside: Inside) -> None:
    (copied / "model.safetensors").write_bytes(pickle.dumps(Trap(copied / "sprung")))
    assert "damaged or not a model" in inside("predict", copied, data[1]).sentence
    assert not (copied / "sprung").exists()


def test_data_that_do_not_fit_the_model(
    finished: tuple[Path, Ended], write: Write, tmp_path: Path, inside: Inside
) -> None:
    run, _ = finished
    narrow = write("narrow", x=np.ones((30, 4), "f"), y=None, classes=None)
    assert "features" in inside("predict", run, narrow).sentence
    strange = write("strange", classes=np.array(["cat", "cow", "pig"]))
    assert "classes that the model does not know: cow, pig" in inside("evaluate", run, strange).sentence
    assert "label" in inside("evaluate", run, narrow).sentence
    assert "is missing" in inside("predict", tmp_path, narrow).sentence
    picture = tmp_path / "a.png"
    Image.new("L", (9, 9)).save(picture)
    assert "the model takes 6 features" in inside("predict", run, picture).sentence


def test_the_doctor_examines_a_given_run_and_its_target(
    finished: tuple[Path, Ended], data: tuple[Path, Path], write: Write, tmp_path: Path, inside: Inside
) -> None:
    run, _ = finished
    good = inside("doctor", "--from", run, "--target", data[1])
    assert good.code == 0
    assert "3 classes" in good.out
    assert "0 errors" in good.out
    narrow = write("narrow", x=np.ones((30, 4), "f"), y=None, classes=None)
    bad = inside("doctor", "--from", run, "--target", narrow, "--json")
    errors = [found["message"] for found in bad.last_line["findings"] if found["severity"] == "error"]
    assert bad.code == 2
    assert errors == ["--from: the run reads 6 features, the target has 4; give the same ones."]
    assert "is missing" in inside("doctor", "--from", tmp_path, "--target", data[1]).out
    assert "no --source" in inside("doctor", "--from", run, "--target", data[1], "--source", data[0]).sentence
