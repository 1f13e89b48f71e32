"""Schedules, seeds, whole files, the loop."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from paretoda.core.problem import Move
from paretoda.gradients import Report
from paretoda.io.files import atomic_file, write_json, write_text
from paretoda.training.loop import fit
from paretoda.training.optimisers import inverse_decay, set_learning_rates
from paretoda.training.seeding import isolated_rng, seed_everything


def test_the_inverse_decay_has_the_values_of_the_specification():
    assert inverse_decay(0.0) == 1.0
    assert inverse_decay(1000 / 10_000) == pytest.approx(0.594604, abs=1e-6)  # γ i = 1e-3 · 1000
    assert inverse_decay(1.0) == pytest.approx(0.16556, abs=1e-5)


def test_learning_rates_keep_their_proportions_and_are_set_not_multiplied_again():
    a, b = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([{"params": [a], "lr": 0.01}, {"params": [b], "lr": 0.1}])
    for factor in (0.5, 0.5, 0.25):
        set_learning_rates(optimiser, factor)
        assert [g["lr"] for g in optimiser.param_groups] == pytest.approx([0.01 * factor, 0.1 * factor])


def test_seeding_leaves_the_callers_chance_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    with isolated_rng(torch.device("cpu")):
        seed_everything(3, 1)
        inside = torch.rand(2)
    assert torch.equal(torch.rand(3), expected)
    with isolated_rng(torch.device("cpu")):
        seed_everything(3, 1)
        assert torch.equal(torch.rand(2), inside)


def test_a_file_is_whole_or_absent(tmp_path):
    path = tmp_path / "sub" / "a.txt"

    def fail():
        with atomic_file(path) as file:
            file.write(b"half")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        fail()
    assert list(path.parent.iterdir()) == []
    write_text(path, "whole é")
    assert path.read_text(encoding="utf-8") == "whole é"
    with pytest.raises(RuntimeError, match="power cut"):
        fail()
    assert path.read_text(encoding="utf-8") == "whole é"
    write_json(path, {"b": 1, "a": [1.5, None]})
    assert json.loads(path.read_text()) == {"a": [1.5, None], "b": 1}
    with pytest.raises(ValueError, match="Out of range"):
        write_json(path, {"a": float("nan")})


def test_a_killed_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    code = (
        "import os, pathlib; from paretoda.io.files import atomic_file\n"
        f"with atomic_file(pathlib.Path({str(path)!r})) as f:\n"
        "    f.write(b'new' * 9); f.flush(); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == -9
    assert path.read_bytes() == b"old"


class Counting:
    """A step that notes what it is given."""

    def __init__(self):
        self.seen = []

    def advance(self, progress):
        self.progress = progress

    def __call__(self, batch):
        self.seen.append((batch, self.progress))
        return Report(("a",), np.ones(1), np.ones(1), Move.FIXED)


def test_the_loop_takes_the_steps_in_order_from_any_first_one():
    step, calls = Counting(), []
    reports = fit(
        step,
        lambda index: f"batch {index}",
        steps=4,
        first=1,
        before=lambda index: calls.append(("before", index)),
        after=[lambda taken, _: calls.append(("after", taken))],
    )
    assert step.seen == [("batch 1", 0.25), ("batch 2", 0.5), ("batch 3", 0.75)]
    assert calls == [("before", 1), ("after", 2), ("before", 2), ("after", 3), ("before", 3), ("after", 4)]
    assert len(reports) == 3
