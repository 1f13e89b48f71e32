"""Half precision in real training: every method, overflow, and going on after a stop."""

import numpy as np
import pytest
import torch
from run.conftest import blobs
from run.memory_steps import CPU, SMALL, steps

from paretoda.api import adapt
from paretoda.gradients import NonFiniteError
from paretoda.objectives import ALIGNMENTS, GUIDES, TARGET_LOSSES
from paretoda.objectives.segmentation import SEGMENTATION_METHODS
from paretoda.objectives.source.cross_entropy import CrossEntropy
from paretoda.run.callbacks import Callbacks
from paretoda.tasks.classification.inputs import open_inputs
from paretoda.tasks.settings import make_settings
from paretoda.training.checkpoint import read_checkpoint, restore_step, save_checkpoint


@pytest.mark.parametrize("method", ALIGNMENTS)
def test_every_method_trains_in_bf16(method):
    settings = {"method": method, "dropout": 0.0}
    _, exact = steps(settings, 1, kind="features")
    step, half = steps({**settings, "precision": "bf16"}, 3, kind="features")
    assert half[0].losses == pytest.approx(exact[0].losses, rel=0.1, abs=0.05)  # later ones follow other pseudo-labels
    assert all(report.finite for report in half)
    assert all(parameter.dtype is torch.float32 for parameter in step.modules().parameters())
    assert all(tensor.isfinite().all() for tensor in step.modules().state_dict().values())


WHOLE_SET = ("none", "tcm", "propagation", "aad", "mixup", "centroids", "novelty")
"""Run above, for open label sets only, or with the whole sets that they read, below."""


@pytest.mark.parametrize("loss", [name for name in TARGET_LOSSES if name not in WHOLE_SET])
def test_every_target_loss_trains_in_bf16(loss):
    settings = {"target_loss": loss, "dropout": 0.0, "scheme": "mgda"}
    _, exact = steps(settings, 2, kind="features")
    _, half = steps({**settings, "precision": "bf16"}, 2, kind="features")
    for one, other in zip(exact, half, strict=True):
        assert other.losses == pytest.approx(one.losses, rel=0.15, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", "16"])
@pytest.mark.parametrize(
    "settings",
    [
        *({"guide": name} for name in GUIDES),
        {"target_loss": "tcm+propagation"},
        {"target_loss": "aad+mixup"},
        {"target_loss": "im+centroids"},
    ],
    ids=str,
)
def test_every_guide_and_whole_set_loss_trains_in_half_precision(settings, precision):
    x, y, t, _ = blobs(n=80)
    run = adapt((x, y), t, **{**SMALL, "steps": 8}, precision=precision, **settings)
    assert run.history[-1]["finite"]
    assert all(np.isfinite(list(line["losses"].values())).all() for line in run.history)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", "16"])
@pytest.mark.parametrize("method", [name for name in SEGMENTATION_METHODS if name != "cycada"])
def test_every_segmentation_method_trains_in_half_precision(method, precision):
    settings = {"task": "segmentation", "method": method, "batch_size": 2, "bottleneck": 256}
    _, exact = steps(settings, 1)
    step, half = steps({**settings, "precision": precision}, 1)
    assert half[0].losses == pytest.approx(exact[0].losses, rel=0.1, abs=0.05)
    assert all(tensor.isfinite().all() for tensor in step.modules().state_dict().values())


def test_the_scaler_is_saved_and_restored_and_a_resumed_run_goes_on_bit_for_bit(tmp_path):
    step, reports = steps({"precision": "16", "method": "mcd"}, 6, kind="features")
    assert not reports[0].finite, "the first scale is too large: this run has a history"
    save_checkpoint(tmp_path / "last.pt", step, 6)
    fresh, _ = steps({"precision": "16", "method": "mcd"}, 0, kind="features")
    assert fresh.scaler.get_scale() != step.scaler.get_scale()
    restore_step(fresh, read_checkpoint(tmp_path / "last.pt"))
    assert fresh.scaler.state_dict() == step.scaler.state_dict()


def test_a_first_step_that_overflows_changes_nothing_and_the_momentum_is_sound():
    """Fused SGD once kept uninitialised memory as its momentum when a scaler skipped its first step."""
    step, _ = steps({"precision": "16"}, 0, kind="features")
    step.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
    before = {name: tensor.clone() for name, tensor in step.model.named_parameters()}
    x, y, t, _ = blobs(n=80)
    pair = open_inputs(make_settings({**SMALL}), (x, y), t, CPU).pair
    report = step(pair.batch(0))
    assert not report.finite
    assert all(torch.equal(tensor, before[name]) for name, tensor in step.model.named_parameters())
    assert all("momentum_buffer" not in state for state in step.optimiser.state.values())
    assert step.scaler.get_scale() == 2.0**39


def test_skipped_steps_are_counted_and_said():
    x, y, t, _ = blobs(n=80)
    said = []
    run = adapt(
        (x, y), t, **SMALL, method="mcd", target_loss="tcm", precision="16", callbacks=Callbacks(say=said.append)
    )
    count = sum(not line["finite"] for line in run.history)
    assert count > 0
    assert {line["move"] for line in run.history if not line["finite"]} == {"skipped"}
    assert f"{count} of 3 steps overflowed in half precision and were skipped; the scale was lowered" in run.sentences
    assert sum("overflowed" in sentence for sentence in said) == 1


def test_a_loss_that_is_nan_at_every_scale_ends_the_run_instead_of_skipping_all_its_steps(monkeypatch):
    x, y, t, _ = blobs(n=80)
    monkeypatch.setattr(CrossEntropy, "forward", lambda _self, source, _target: source.logits.sum() * float("nan"))
    settings = {**SMALL, "steps": 40, "evaluate_every": 40}
    with pytest.raises(
        NonFiniteError, match=r"however far their scale is lowered; take --precision bf16 or 32"
    ) as caught:
        adapt((x, y), t, **settings, precision="16")
    assert "this was step 17 of 40" in str(caught.value)  # 2^16 is the first scale, a half the first below 1
    assert "--skip-nonfinite" not in str(caught.value)
