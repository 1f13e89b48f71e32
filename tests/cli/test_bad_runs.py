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
