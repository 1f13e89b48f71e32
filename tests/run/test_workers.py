"""Threads that read ahead change nothing of a run but its time."""

import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from cli.processes import ended, start
from PIL import Image

from paretoda import adapt, segment
from paretoda.data.segmentation import ScenePairSettings, make_scene_pair
from paretoda.distributed.collectives import SINGLE_PROCESS
from paretoda.errors import DataError
from paretoda.run.train import Prefetcher
from paretoda.training.snapshot import pin_batch
from paretoda.types import Batch

QUICK = {"steps": 4, "batch_size": 4, "bottleneck": 4, "evaluate_every": 2, "refresh_every": 2, "reference": False}


@pytest.fixture
def photos(tmp_path: Path) -> tuple[Path, Path]:
    """A source of two classes and a target, 24 images of 24 px each, in files."""
    rng = np.random.default_rng(0)
    for number in range(24):
        for path in (f"source/{'ab'[number % 2]}/{number}.png", f"target/{number:02}.png"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 256, (24, 24, 3), dtype=np.uint8)).save(tmp_path / path)
    return tmp_path / "source", tmp_path / "target"


@pytest.fixture
def streets(tmp_path: Path) -> tuple[Path, Path]:
    """Scenes of 32x24 with three classes, in files."""
    rng = np.random.default_rng(0)
    for number in range(22):
        for domain in ("source", "target"):
            for kind in ("images", "labels"):
                (tmp_path / domain / kind).mkdir(parents=True, exist_ok=True)
            labels = np.kron(rng.integers(0, 3, (3, 4), dtype=np.uint8), np.ones((8, 8), np.uint8))
            pixels = np.stack([80 * labels, 255 - 80 * labels, labels], axis=2)
            Image.fromarray(pixels).save(tmp_path / domain / "images" / f"{number:02}.png")
            Image.fromarray(labels).save(tmp_path / domain / "labels" / f"{number:02}.png")
    return tmp_path / "source", tmp_path / "target" / "images"


class Wanting:
    """A step that wants a guide as a list says."""

    device = torch.device("cpu")
    guide = object()
    processes = SINGLE_PROCESS

    def __init__(self, wanted):
        self.wanted = list(wanted)

    @property
    def wants_guide(self):
        return self.wanted[0]


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_every_step_gets_the_batch_that_it_would_read_itself(streets, workers, every):
    pair = make_scene_pair(*streets, ScenePairSettings(batch_size=2))
    wanted = [True, False, True, True, False, False, True]
    step = Wanting(wanted)
    with Prefetcher(replace(pair, workers=workers), step, range(2, 9), every) as batches:
        for number, guide in zip(range(2, 9), wanted, strict=True):
            ours, theirs = batches(number), pair.batch(number, guide=guide)
            step.wanted.pop(0)
            for name, tensor in vars(theirs).items():
                found = getattr(ours, name)
                assert found is None if tensor is None else torch.equal(found, tensor)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("paretoda-reading")]


def test_steps_out_of_turn_are_refused(streets):
    pair = replace(make_scene_pair(*streets, ScenePairSettings(batch_size=2)), workers=1)
    with Prefetcher(pair, Wanting([True]), range(5), 1) as batches, pytest.raises(ValueError, match="out of order"):
        batches(3)


def test_only_batches_for_a_gpu_are_pinned(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor + 1)
    tensors = [torch.zeros(2) for _ in range(5)]
    batch = Batch(*tensors[:3], None, *tensors[3:], None)
    assert pin_batch(batch, torch.device("cpu")) is batch
    found = pin_batch(batch, torch.device("cuda"))
    assert found.guide is None
    assert all(tensor.tolist() == [1, 1] for tensor in vars(found).values() if tensor is not None)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classification", "segmentation"])
def test_the_final_model_does_not_depend_on_the_workers(photos, streets, task, tmp_path):
    train, data = (adapt, photos) if task == "classification" else (segment, streets)
    quick = {name: value for name, value in QUICK.items() if task == "classification" or name != "bottleneck"}
    files = {}
    for workers in (0, 1, 3):
        out = tmp_path / f"{task}-{workers}"
        train(*data, out, workers=workers, every=2, scheme="paretoda", **quick)
        files[workers] = [
            (out / name).read_bytes() for name in ("model.safetensors", "metrics.jsonl", "predictions.csv")
        ]
    assert files[0] == files[1] == files[3]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 3])
def test_a_file_that_vanishes_in_training_is_named(photos, workers, monkeypatch):
    monkeypatch.setattr("paretoda.data.rows._MEMORY", 0)

    def vanish(taken, _report):
        if taken == 2:
            for path in photos[1].glob("*.png"):
                path.unlink()

    settings = {**QUICK, "steps": 40, "method": "dann", "target_loss": "none", "scheme": "linear", "select": "last"}
    with pytest.raises(DataError, match=r"\.png does not exist; correct the path"):
        adapt(*photos, workers=workers, after=[vanish], **settings)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("paretoda-reading")]


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_control_c_ends_a_run_with_workers_cleanly(photos, tmp_path, times):
    out = tmp_path / "run"
    options = ("--steps", 5000, "--batch-size", 4, "--bottleneck", 4, "--workers", 3, "--method", "source-only")
    process = start("adapt", "--source", photos[0], "--target", photos[1], "--out", out, *options)
    deadline = time.monotonic() + 300
    while not (out / "metrics.jsonl").exists() or process.poll() is not None:
        assert process.poll() is None, ended(process)
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
    said = ended(process)
    assert said.code == 130, said
    assert "Traceback" not in said.err
    assert "--resume` continues" in said.err
