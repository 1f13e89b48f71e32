"""Over all commands and processes a frozen image is encoded once; `paretoda cache` shows and clears what is kept."""

import sys
from collections import Counter

import numpy as np
import pytest
from cli.processes import SMALL
from PIL import Image

from paretoda.models.backbones import user_module as own_module

COUNTING = """
import hashlib
from pathlib import Path
from torch import nn

HERE = Path(__file__).parent

class Net(nn.Module):
    # Writes down each image of a batch that it encodes, by the hash of its pixels.

    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Linear(1, 1)
        nn.init.ones_(self.scale.weight)
        nn.init.zeros_(self.scale.bias)

    def forward(self, images):
        if images.device.type != "meta" and images.any():  # zeros: its width is measured
            names = {hashlib.md5(image.numpy().tobytes()).hexdigest() for image in images}
            with (HERE / "encoded.log").open("a") as file:
                file.write("".join(f"{name}\\n" for name in names))
        return nn.functional.adaptive_avg_pool2d(images, 2).flatten(1) * self.scale.weight[0, 0]
"""
DOMAINS = {"amazon": 45, "webcam": 40}


@pytest.fixture
def office(tmp_path, monkeypatch):
    """Two domains in the layout of Office-31, a backbone that counts, and an empty cache."""
    rng = np.random.default_rng(0)
    for number, (domain, count) in enumerate(DOMAINS.items()):
        for k in range(count):
            path = tmp_path / domain / "images" / "ab"[k % 2] / f"frame_{k:04}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            image = rng.integers(0, 90, (36, 40, 3)) + 120 * (k % 2) + 20 * number
            Image.fromarray(image.astype(np.uint8)).save(path)
    name = f"counting_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(COUNTING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(own_module, "_consented", set())
    monkeypatch.setenv(own_module.TRUSTED, f"{name}.Net")
    monkeypatch.setenv("PARETODA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PARETODA_CACHE_GB", raising=False)
    return tmp_path, ("--frozen", "--backbone", f"module:{name}.Net", "--image-size", "32", "--device", "cpu")


def encoded(home):
    log = home / "encoded.log"
    return Counter(log.read_text().splitlines()) if log.exists() else Counter()


def bench(home, frozen):
    rows = ("--methods", "source-only,dann", "--target-losses", "none", "--schemes", "linear", "--seeds", "1")
    small = ("--steps", "6", "--evaluate-every", "3", "--bottleneck", "8")
    return ("bench", "office31", "--data", home, "--out", home / "bench", "--jobs", "2", *rows, *small, *frozen)


def test_two_workers_of_a_bench_adapt_predict_evaluate_and_report_encode_every_image_once(office, inside):
    home, frozen = office
    end = inside(*bench(home, (*frozen, "--tasks", "A-W")))  # both runs need the same images at the same time
    assert end.code == 0, end.err
    assert Counter(encoded(home).values()) == {1: 85}
    both = ("--source", home / "amazon" / "images", "--target", home / "webcam" / "images")
    (home / "some.txt").write_text("\n".join(f"webcam/images/a/frame_{k:04}.png" for k in range(38, -1, -2)))
    for command in (
        ("adapt", *both, "--out", home / "run", *SMALL, *frozen),
        ("predict", home / "run", home / "some.txt"),
        ("predict", home / "run", home / "amazon" / "images" / "a" / "frame_0000.png"),
        ("evaluate", home / "run", home / "webcam" / "images"),
        ("report", home / "run", "--labelled", home / "webcam" / "images"),
    ):
        assert inside(*command).code == 0, command
    assert Counter(encoded(home).values()) == {1: 85}


def test_two_workers_of_a_study_and_a_bench_after_it_encode_every_image_once(office, inside):
    home, frozen = office
    small = ("--seeds", "1", "--jobs", "2", "--steps", "2", "--bottleneck", "8")
    end = inside("study", "path", "office31", "--task", "A-W", "--data", home, "--out", home / "study", *small, *frozen)
    assert end.code == 0, end.err
    assert "begins as its own code makes it" in end.err
    assert Counter(encoded(home).values()) == {1: 85}
    assert inside(*bench(home, (*frozen, "--tasks", "A-W"))).code == 0
    assert Counter(encoded(home).values()) == {1: 85}


def test_without_a_cache_predictions_are_the_same_and_a_run_encodes_its_images_once(office, inside, monkeypatch):
    home, frozen = office
    both = ("--source", home / "amazon" / "images", "--target", home / "webcam" / "images")
    for run, gigabytes in (("kept", "5"), ("off", "0")):
        monkeypatch.setenv("PARETODA_CACHE_GB", gigabytes)
        assert inside("adapt", *both, "--out", home / run, *SMALL, *frozen).code == 0
    assert Counter(encoded(home).values()) == {2: 85}
    predicted = {(home / run / "predictions.csv").read_text() for run in ("kept", "off")}
    predicted |= {inside("predict", home / run, home / "webcam" / "images").out for run in ("kept", "off")}
    monkeypatch.delenv("PARETODA_CACHE_GB")
    predicted |= {inside("predict", home / run, home / "webcam" / "images").out for run in ("kept", "off")}
    assert len(predicted) == 1


def test_the_cache_is_shown_and_cleared(office, inside):
    home, frozen = office
    empty = inside("cache").out
    assert f"The cache in {home / 'cache'} has 0 bytes of at most 5.0 GB ($PARETODA_CACHE_GB)." in empty
    both = ("--source", home / "amazon" / "images", "--target", home / "webcam" / "images")
    assert inside("adapt", *both, "--out", home / "run", *SMALL, *frozen).code == 0
    shown = inside("cache").out
    assert " 85 " in shown
    facts = inside("cache", "--json").last_line
    (entry,) = facts["entries"]
    assert (entry["kind"], entry["items"], facts["folder"]) == ("features", 85, str(home / "cache"))
    assert 0 < entry["size"] == facts["bytes"] < facts["limit"] == 5e9
    kept = inside("cache", "--clear", "--older-than", "1", "--json").last_line
    assert (kept["removed"], kept["bytes"]) == (0, facts["bytes"])
    gone = inside("cache", "--clear", "--json").last_line
    assert (gone["removed"], gone["entries"]) == (facts["bytes"], [])
    assert list((home / "cache").rglob("*")) == [home / "cache" / "features"]
    assert "give both" in inside("cache", "--older-than", "1").sentence
    assert inside("predict", home / "run", home / "webcam" / "images").code == 0
    assert Counter(encoded(home).values()) == {1: 45, 2: 40}


def test_the_progress_of_features_is_shown(office, inside, monkeypatch):
    home, frozen = office
    monkeypatch.setattr("paretoda.cli.console._WORTH_A_LINE", 0.0)
    both = ("--source", home / "amazon" / "images", "--target", home / "webcam" / "images")
    adapted = inside("adapt", *both, "--out", home / "run", *SMALL, *frozen).err
    assert "features of the source: 32 of 45, " in adapted
    assert "features of the target: 40 of 40\n" in adapted
    assert "features" not in inside("predict", home / "run", home / "webcam" / "images").err
    for command in ("predict", "evaluate"):
        inside("cache", "--clear")
        assert "features: 40 of 40\n" in inside(command, home / "run", home / "webcam" / "images").err
