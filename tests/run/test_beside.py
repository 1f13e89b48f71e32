"""Work in a copy of the process: its result, its errors, its end; and a reference that is the same wherever trained."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from paretoda.api import adapt
from paretoda.errors import RunError
from paretoda.run import beside
from paretoda.run.beside import Beside, copies_allowed, start_beside
from paretoda.run.callbacks import Callbacks
from paretoda.run.threads import limit_threads

torch.set_num_threads(1)
CPU = torch.device("cpu")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot copy processes")


@pytest.fixture
def idle(monkeypatch):
    monkeypatch.setattr(beside, "has_idle_core", lambda: True)


def test_the_result_comes_from_another_process_with_the_same_random_state():
    torch.manual_seed(5)
    work = Beside(lambda: (os.getpid(), torch.randn(3).tolist()))
    process, numbers = work.result()
    assert process != os.getpid()
    assert numbers == torch.randn(3).tolist()  # and our own state was not touched


def test_an_error_is_raised_here_and_a_killed_process_is_explained():
    def fail():
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        Beside(fail).result()
    with pytest.raises(RunError, match="was killed"):
        Beside(lambda: os.kill(os.getpid(), 9)).result()


def test_a_process_that_is_not_needed_is_ended():
    work = Beside(lambda: time.sleep(600))
    process = work._process
    work.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    work.stop()  # once more does no harm


@pytest.mark.usefixtures("idle")
def test_only_those_who_may_copy_the_process_do():
    assert start_beside(lambda: 1, CPU) is None
    with copies_allowed():
        assert start_beside(lambda: 1, torch.device("meta")) is None
        found = start_beside(lambda: 1, CPU)
        assert found is not None
        assert found.result() == 1
    assert start_beside(lambda: 1, CPU) is None


def test_a_busy_machine_gets_no_further_process(monkeypatch):
    monkeypatch.setattr(beside, "has_idle_core", lambda: False)
    with copies_allowed():
        assert start_beside(lambda: 1, CPU) is None


@pytest.mark.usefixtures("idle")
def test_a_reference_beside_the_training_changes_no_file(arrays, tmp_path):
    x, y, t, _ = arrays
    small = {"steps": 20, "batch_size": 16, "bottleneck": 8, "evaluate_every": 10}
    steps = []
    callbacks = Callbacks(reference=[lambda taken, _report: steps.append(taken)])
    alone = adapt((x, y), t, tmp_path / "alone", callbacks=callbacks, **small)
    assert steps == list(range(1, 21))  # trained here, where a hook sees it
    with copies_allowed():
        copied = adapt((x, y), t, tmp_path / "copied", callbacks=callbacks, **small)
    assert len(steps) == 20  # trained elsewhere
    assert alone.negative_transfer == copied.negative_transfer
    for name in ("model.safetensors", "predictions.csv", "metrics.csv"):
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "copied" / name).read_bytes(), name
    one, other = (json.loads(Path(tmp_path / name / "results.json").read_text()) for name in ("alone", "copied"))
    assert one == other


@pytest.mark.usefixtures("idle")
def test_a_run_that_fails_leaves_no_process_behind(arrays, monkeypatch):
    x, y, t, _ = arrays
    started = []

    def start(_work):
        started.append(Beside(lambda: time.sleep(600)))
        return started[-1]

    monkeypatch.setattr(beside, "Beside", start)

    def fail(_taken, _report):
        raise OSError("the disk is full")

    with copies_allowed(), pytest.raises(OSError, match="disk"):
        adapt((x, y), t, steps=5, batch_size=16, after=[fail])
    assert len(started) == 1
    assert started[0]._process == 0


def test_threads_are_one_for_features_and_as_before_afterwards():
    torch.set_num_threads(2)
    try:
        with limit_threads("features", None):
            assert torch.get_num_threads() == 1
        with limit_threads("features", 2):
            assert torch.get_num_threads() == 2
        with limit_threads("images", None):
            assert 1 <= torch.get_num_threads() <= 2
        assert torch.get_num_threads() == 2
        x = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
        seen = []
        adapt(
            (x, np.arange(60) % 2),
            x,
            steps=2,
            batch_size=8,
            reference=False,
            after=[lambda *_: seen.append(torch.get_num_threads())],
        )
        assert seen == [1, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
