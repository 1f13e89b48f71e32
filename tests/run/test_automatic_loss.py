"""The default target loss depends on the data: MCC for features, TCM for images."""

import numpy as np
import pytest

from paretoda import adapt
from paretoda.errors import SettingsError
from paretoda.tasks.settings import make_settings

TINY = {"steps": 2, "batch_size": 12, "bottleneck": 6, "select": "last", "reference": False, "device": "cpu"}
LABELS = np.arange(60) % 3
FEATURES = np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32)
IMAGES = np.random.default_rng(0).integers(256, size=(60, 16, 16), dtype=np.uint8)


@pytest.mark.parametrize(("data", "loss"), [(FEATURES, "mcc"), (IMAGES, "tcm")])
def test_the_run_says_which_loss_it_took_and_takes_the_same_one_by_name(data, loss):
    run = adapt((data, LABELS), data, **TINY)
    assert run.settings.target_loss == f"{loss}+propagation"
    assert f"{loss}+propagation" in repr(run)
    named = adapt((data, LABELS), data, method=f"dann+{loss}+propagation", **TINY)
    assert np.array_equal(run.predict_proba(data), named.predict_proba(data))


def test_other_losses_stay_as_they_are_and_segmentation_has_no_automatic_one():
    assert make_settings({"method": "dann+im"}).for_data("features").target_loss == "im"
    with pytest.raises(SettingsError, match="auto"):
        make_settings({"task": "segmentation", "target_loss": "auto"})
