"""Runs of segmentation that learn from an averaged teacher."""

import pytest
import torch
from tasks.segmentation.conftest import QUICK, goes_on_to_the_same_bytes

from paretoda import segment
from paretoda.errors import SettingsError
from paretoda.tasks.settings import make_settings


@pytest.mark.parametrize("scheme", ["paretoda", "linear"])
def test_methods_combine_with_self_training(streets, scheme):
    source, target, _ = streets
    settings = {**QUICK, "steps": 2, "scheme": scheme, "translation": "none"}
    run = segment(source, target, method="advent+dacs+mic", **settings)
    losses = run.history[0]["losses"]
    assert set(losses) >= {"target", "mic"}
    assert all(value >= 0 for name, value in losses.items() if name in ("target", "mic"))


def test_losses_on_the_teachers_labels_train_the_head(streets):
    settings = make_settings({"task": "segmentation", "method": "source-only+tcm+dacs+mic"})
    assert settings.head_losses == ("source", "dacs", "mic")
    assert make_settings({"task": "segmentation", "method": "advent"}).head_losses == ("source",)
    source, target, _ = streets
    runs = [
        segment(source, target, method="source-only+dacs", options=["target.confidence=0.0"], **QUICK, **more)
        for more in ({}, {"head_losses": ["source"]})
    ]
    first, second = (run.last.model.head.main for run in runs)
    assert any(not torch.equal(one, other) for one, other in zip(first.parameters(), second.parameters(), strict=True))


def test_a_run_is_resumed_to_the_same_bytes(folders, tmp_path):
    settings = {**QUICK, "method": "source-only+dacs+mic", "checkpoint_every": 3}
    goes_on_to_the_same_bytes(folders / "source", folders / "target", tmp_path, settings)


def test_what_does_not_go_with_a_teacher_is_said(streets):
    source, target, _ = streets
    with pytest.raises(SettingsError, match="leave out --accumulate"):
        segment(source, target, method="source-only+mic", **{**QUICK, "batch_size": 4, "accumulate": 2})
