"""Without a target only the source can be learnt, and the run says so."""

import numpy as np
import pytest

from paretoda.api import adapt
from paretoda.errors import SettingsError
from paretoda.run.directory.directory import RunDirectory


def test_a_source_alone_is_learnt_and_its_run_names_no_target(files, small):
    run = adapt(files / "source.npz", out=files / "run", method="source-only", **small)
    settings, inputs = RunDirectory(files / "run").read_config()
    assert set(inputs) == {"source"}
    assert settings == run.settings
    assert run.settings.select == "last"
    assert run.scores == {}
    assert any("no target" in sentence for sentence in run.sentences)
    assert np.array_equal(run.model.transform.mean, run.source_model.transform.mean)


@pytest.mark.parametrize("chosen", [{}, {"method": "dann"}, {"method": "source-only+im"}])
def test_adaptation_needs_a_target(files, small, chosen):
    with pytest.raises(SettingsError, match="give a source and a target"):
        adapt(files / "source.npz", **small, **chosen)


def test_twenty_samples_are_asked_of_a_target_and_not_of_a_source_alone(arrays, small):
    x, y, t, _ = arrays
    adapt((x[:12], y[:12]), method="source-only", **small)
    with pytest.raises(ValueError, match="at least 20"):
        adapt((x, y), t[:12], method="source-only", **small)
