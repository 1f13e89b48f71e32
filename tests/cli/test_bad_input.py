"""Bad input gives one sentence that says what to do, exit code 2, and leaves nothing behind."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.conftest import Write, features
from cli.processes import SMALL, Inside, command
from PIL import Image

Case = tuple[Callable[[Write], Path], str]

WRONG_SOURCES: dict[str, Case] = {
    "missing path": (lambda _: Path("no/where.npz"), "no/where.npz does not exist"),
    "no labels": (lambda write: write("bad", y=None), "label"),
    "single class": (lambda write: write("bad", y=np.zeros(60, int)), "a single class, 'cat'"),
    "other width": (lambda write: write("bad", x=np.ones((60, 5), "f")), "the source has 5 features"),
    "NaN": (lambda write: write("bad", x=spoilt(np.nan)), "NaN"),
    "infinite": (lambda write: write("bad", x=spoilt(np.inf)), "infinite"),
    "labels no integers": (lambda write: write("bad", y=np.linspace(0, 1, 60)), "instead of integers"),
    "labels beyond classes": (lambda write: write("bad", y=np.arange(60)), "go beyond its 3 classes"),
    "no npz": (lambda write: noise(write("bad")), "bad.npz"),
}


def spoilt(value: float) -> Any:
    x = features(60, 0, 0)["x"]
    x[7, 3] = value
    return x


def noise(path: Path) -> Path:
    path.write_bytes(b"no zip at all")
    return path


@pytest.mark.parametrize(("make", "words"), WRONG_SOURCES.values(), ids=list(WRONG_SOURCES))
def test_a_wrong_source(
    make: Callable[[Write], Path],
    words: str,
    write: Write,
    data: tuple[Path, Path],
    tmp_path: Path,
    inside: Inside,
) -> None:
    said = inside("adapt", "--source", make(write), "--target", data[1], "--out", tmp_path / "run", *SMALL)
    assert words in said.sentence
    assert said.out == ""
    assert not (tmp_path / "run").exists()


def test_too_few_target_samples_in_a_process_of_its_own(data: tuple[Path, Path], write: Write, tmp_path: Path) -> None:
    few = write("few", count=19)
    said = command("adapt", "--source", data[0], "--target", few, "--out", tmp_path / "run", "--json")
    assert "19 samples; collect at least 20" in said.sentence
    assert said.out == ""
    assert not (tmp_path / "run").exists()


def test_image_folders(tmp_path: Path, inside: Inside) -> None:
    source, target, empty = tmp_path / "source", tmp_path / "target", tmp_path / "empty"
    empty.mkdir()
    rng = np.random.default_rng(0)
    for k in range(24):
        for path in (source / "ab"[k % 2] / f"{k}.png", target / f"{k}.png"):
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 255, (8, 8), dtype=np.uint8)).save(path)
    out = tmp_path / "run"
    assert "empty" in inside("adapt", "--source", source, "--target", empty, "--out", out).sentence
    broken = target / "7.png"
    broken.write_bytes(broken.read_bytes()[:40])
    given = ("adapt", "--source", source, "--target", target, "--out", out, *SMALL)
    assert "7.png" in inside(*given).sentence
    assert not out.exists()
    said = inside(*given, "--skip-bad")
    assert said.code == 0
    assert "1 unreadable image files were left out: 7.png" in said.err


WRONG_SETTINGS = {
    ("--method", "dannn"): "there is no method 'dannn'; did you mean 'dann'?",
    ("--method", "dann+tmc"): "did you mean 'tcm'?",
    ("--method", "dann+im", "--target-loss", "tcm"): "contradict",
    ("--scheme", "paretada"): "did you mean 'paretoda'?",
    ("--backbone", "resnet5"): "there is no backbone 'resnet5'; did you mean 'resnet50'?",
    ("--backbone-weights", "no.pth"): "leave out --backbone-weights",
    ("--backbone", "resnet50"): "reads images, the data are features; leave out --backbone",
    ("--frozen",): "leave out --frozen",
    ("--device", "abacus"): "the device 'abacus' cannot be used here",
    ("--loss-weights", "1,2"): "loss_weights",
    ("--loss-weights", "one"): "loss_weights",
    ("--steps", "0"): "steps",
    ("--steps", "many"): "--steps",
    ("--stps", "5"): "--steps",
    ("--bn", "none"): "--bn",
    ("--resume",): "there is no run in",
    ("--config", "no.toml"): "there is no config file no.toml",
}


@pytest.mark.parametrize("options", WRONG_SETTINGS, ids=" ".join)
def test_a_wrong_setting(options: tuple[str, ...], data: tuple[Path, Path], tmp_path: Path, inside: Inside) -> None:
    said = inside("adapt", "--source", data[0], "--target", data[1], "--out", tmp_path / "run", "-q", *options)
    assert WRONG_SETTINGS[options] in said.sentence
    assert not (tmp_path / "run").exists()


def test_a_wrong_config_file(data: tuple[Path, Path], tmp_path: Path, inside: Inside) -> None:
    config, out = tmp_path / "my.toml", tmp_path / "run"
    given = ("adapt", "--source", data[0], "--target", data[1], "--out", out, "--config", config)
    config.write_text("stpes = 5\n")
    assert "my.toml: there is no setting 'stpes'; did you mean 'steps'?" in inside(*given).sentence
    config.write_text("steps = [")
    assert "is not a TOML file" in inside(*given).sentence
    config.write_text("[steps]\nmany = 1")
    assert "steps" in inside(*given).sentence
    assert not out.exists()


def test_a_place_that_is_taken(data: tuple[Path, Path], tmp_path: Path, inside: Inside) -> None:
    given = ("adapt", "--source", data[0], "--target", data[1], *SMALL, "--out")
    (tmp_path / "file").write_text("mine")
    assert "is a file" in inside(*given, tmp_path / "file").sentence
    assert "is not empty and contains no run" in inside(*given, tmp_path, "--overwrite").sentence
    assert (tmp_path / "file").read_text() == "mine"


@pytest.fixture
def tiny_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if os.geteuid() != 0 or mount is None:
        pytest.skip("only root can mount a tiny disk")
    options = f"size={request.param}"
    if subprocess.run([mount, "-t", "tmpfs", "-o", options, "tmpfs", place], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("tiny_disk", ["4k", "96k"], indirect=True)
def test_a_full_disk(tiny_disk: Path, data: tuple[Path, Path], inside: Inside) -> None:
    out = tiny_disk / "run"
    said = inside("adapt", "--source", data[0], "--target", data[1], "--out", out, *SMALL, "--quiet")
    assert "the disk is full" in said.sentence
    assert not (out / "model.safetensors").exists()
    assert not list(tiny_disk.rglob(".*")), "a half-written file stayed behind"
    assert out.exists() == (out / "config.toml").exists(), "either a run that can be resumed, or nothing"


def test_a_place_without_permission(data: tuple[Path, Path], inside: Inside) -> None:
    given = ("adapt", "--source", data[0], "--target", data[1], *SMALL, "--quiet", "--out")
    assert inside(*given, "/proc/run").code == 2


def test_a_traceback_only_on_demand(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ("predict", "nowhere", "nothing")
    assert "is missing" in inside(*given).sentence
    for extra, value in (("--debug", "0"), ("--quiet", "1")):
        monkeypatch.setenv("PARETODA_DEBUG", value)
        with pytest.raises(ValueError, match="is missing"):
            inside(*given, extra)
