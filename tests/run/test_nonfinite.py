"""A NaN stops a run and says where; a few may be left out, and then nothing of them is left in any network."""

import copy
import json

import numpy as np
import pytest
import torch
from training.networks import network_batch, network_step
from training.test_checkpoint import same

from paretoda.api import adapt
from paretoda.core.problem import Move
from paretoda.errors import SettingsError
from paretoda.gradients import NonFiniteError
from paretoda.objectives import CrossEntropy
from paretoda.run.callbacks import Callbacks
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.nonfinite import TolerantStep
from paretoda.schemes.gradnorm import GradNorm
from paretoda.tasks.settings import make_settings
from paretoda.training.checkpoint import read_checkpoint, step_state
from paretoda.types import Batch


@pytest.fixture
def bad_steps(monkeypatch):
    """The source's loss is NaN at these steps of 40, numbered from 1."""
    wrong = set()
    forward, advance = CrossEntropy.forward, CrossEntropy.advance

    def noted(self, progress):
        self.now = round(40 * progress) + 1
        advance(self, progress)

    def spoilt(self, source, target):
        loss = forward(self, source, target)
        return loss * float("nan") if getattr(self, "now", 0) in wrong else loss

    monkeypatch.setattr(CrossEntropy, "advance", noted)
    monkeypatch.setattr(CrossEntropy, "forward", spoilt)
    return wrong


@pytest.mark.parametrize("spoilt", ["inputs", "loss"])
def test_a_step_that_is_left_out_changes_nothing_not_even_batchnorm_or_the_schemes_memory(spoilt, monkeypatch):
    step = network_step(GradNorm())
    step(network_batch())
    good = network_batch(4)
    batch = good
    if spoilt == "inputs":
        nan = torch.full_like(good.source, float("nan"))
        batch = Batch(nan, good.labels, good.target, good.guide, good.source_index, good.target_index, good.guide_index)
    else:
        alignment = type(step.objectives["alignment"])
        private = alignment.private_loss
        monkeypatch.setattr(alignment, "private_loss", lambda *given: float("inf") * private(*given))
    before = copy.deepcopy(step_state(step, 1))
    said = []
    tolerant = TolerantStep(step, 1, said.append)
    report = tolerant(batch)
    assert (report.finite, report.move, tolerant.skipped) == (False, Move.SKIPPED, 1)
    assert same(step_state(step, 1), before)
    assert all(parameter.grad is None for parameter in step.modules().parameters())
    assert len(said) == 1
    assert said[0].startswith("A step was skipped, 1 of 1 that may be: ")
    with pytest.raises(NonFiniteError):
        tolerant(batch)


def test_a_nan_loss_stops_at_its_step_and_the_last_checkpoint_is_good(files, small, bad_steps):
    bad_steps.add(27)
    with pytest.raises(NonFiniteError) as stop:
        adapt(files / "source.npz", files / "target.npz", files / "run", **small)
    told = str(stop.value)
    for words in (
        "the loss of 'source' is nan",
        "this was step 27 of 40",
        "a lower --lr",
        "--clip",
        "--skip-nonfinite",
    ):
        assert words in told
    run = RunDirectory(files / "run")
    assert read_checkpoint(run.checkpoint)["taken"] == 20
    assert len(run.read_metrics()) == 26
    bad_steps.clear()  # whatever it was, it is over
    adapt(out=files / "run", resume=True)
    adapt(files / "source.npz", files / "target.npz", files / "whole", **small)
    assert run.model.read_bytes() == (files / "whole" / "model.safetensors").read_bytes()


def test_a_resumed_run_may_leave_out_more_and_remembers_how_many_it_left_out(files, small, bad_steps):
    bad_steps.update((3, 17, 18, 33))
    said = []
    callbacks = Callbacks(say=said.append)
    given = (files / "source.npz", files / "target.npz")
    with pytest.raises(NonFiniteError, match="this was step 33 of 40 after 3 were skipped"):
        adapt(*given, files / "run", callbacks=callbacks, **small, skip_nonfinite=3)
    assert [line for line in said if "was skipped" in line] == said
    assert [sentence.split(" that")[0][-6:] for sentence in said] == ["1 of 3", "2 of 3", "3 of 3"]
    with pytest.raises(NonFiniteError, match="this was step 33 of 40 after 3 were skipped"):
        adapt(out=files / "run", resume=True)  # from step 30: the count is not forgotten
    run = adapt(out=files / "run", resume=True, skip_nonfinite=4)
    directory = RunDirectory(files / "run")
    assert directory.read_config()[0].skip_nonfinite == 4
    lines = [json.loads(line, parse_constant=pytest.fail) for line in directory.metrics.read_text().splitlines()]
    assert [line["step"] for line in lines if not line["finite"]] == [3, 17, 18, 33]
    assert run.moves["skipped"] == 4
    whole = adapt(*given, files / "whole", **small, skip_nonfinite=4)
    assert directory.model.read_bytes() == (files / "whole" / "model.safetensors").read_bytes()
    assert run.history == whole.history
    assert (files / "run" / "report.html").exists()


def test_networks_that_overflow_never_become_a_checkpoint(files, small):
    with pytest.raises(NonFiniteError, match="lower --lr"):
        adapt(files / "source.npz", files / "target.npz", files / "run", **small, lr=1e30)
    path = RunDirectory(files / "run").checkpoint
    if path.exists():
        modules = read_checkpoint(path)["modules"].values()
        assert all(np.isfinite(tensor.double().numpy()).all() for tensor in modules)


def test_what_does_not_combine_is_refused():
    with pytest.raises(SettingsError, match="the gradient scaler skips such steps"):
        make_settings({"precision": "16", "skip_nonfinite": 3})
