"""`--deterministic` sets every switch, puts it back, and what cannot be deterministic is one sentence."""

import os

import pytest
import torch

from paretoda.api import adapt
from paretoda.errors import SettingsError
from paretoda.objectives import ALIGNMENTS, TARGET_LOSSES
from paretoda.run.start import use_deterministic_algorithms
from paretoda.tasks.settings import make_settings

ON, OFF = make_settings({"deterministic": True}), make_settings({})


def switches():
    flags = torch.backends.cudnn
    return torch.are_deterministic_algorithms_enabled(), flags.deterministic, flags.benchmark


def test_inside_all_switches_are_set_and_afterwards_they_are_as_before(monkeypatch):
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    before = switches()
    with use_deterministic_algorithms(OFF):
        assert switches() == before
        assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    with use_deterministic_algorithms(ON):
        assert switches() == (True, True, False)
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert switches() == before


def test_what_cannot_be_deterministic_is_one_sentence_and_other_errors_stay_what_they_are():
    with (
        pytest.raises(SettingsError, match="does not have a deterministic implementation; take --device cpu, or leave"),
        use_deterministic_algorithms(ON),
    ):
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    with pytest.raises(RuntimeError, match="mine"), use_deterministic_algorithms(ON):
        raise RuntimeError("mine")
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.slow
@pytest.mark.parametrize("loss", [*(f"{name}+im" for name in ALIGNMENTS), *(f"dann+{name}" for name in TARGET_LOSSES)])
def test_every_method_can_be_deterministic(arrays, loss):
    x, y, t, _ = arrays
    small = {"steps": 3, "batch_size": 16, "bottleneck": 8, "select": "last", "reference": False}
    one, two = (adapt((x, y), t, method=loss, **small, deterministic=True) for _ in range(2))
    assert one.history == two.history
