"""How a run starts: nothing is lost, whoever comes first, and a resumed run is the run that was started."""

import numpy as np
import pytest

from paretoda import adapt
from paretoda.errors import RunError, SettingsError
from paretoda.run.directory.directory import RunDirectory
from paretoda.tasks.classification.task import Classification
from paretoda.tasks.settings import make_settings

QUICK = {"steps": 2, "select": "last", "reference": False, "device": "cpu"}


def data(images=False):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (40, 8, 8)).astype(np.uint8) if images else rng.normal(size=(40, 3))
    return (x, np.arange(40) % 2), x


def test_a_run_that_finished_in_the_directory_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    opened = Classification.open

    def slow(self, *given, **options):
        monkeypatch.setattr(Classification, "open", opened)
        adapt(*data(), tmp_path / "run", **QUICK, seed=1)
        return opened(self, *given, **options)

    monkeypatch.setattr(Classification, "open", slow)
    with pytest.raises(RunError, match="already has a run"):
        adapt(*data(), tmp_path / "run", **QUICK)
    assert RunDirectory(tmp_path / "run").read_config()[0].seed == 1


@pytest.mark.parametrize("given", [{}, {"task": "segmentation", "head_losses": None}, {"task": "segmentation"}])
def test_settings_that_are_written_and_read_are_the_same(given):
    settings = make_settings(given)
    assert make_settings(settings.model_dump()) == settings


def interrupted(out):
    def stop(taken, _report):
        if taken == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        adapt(*data(), out, **QUICK, checkpoint_every=1, after=[stop])


def test_a_resumed_run_of_data_in_memory_asks_for_them_and_goes_on_with_them(tmp_path):
    interrupted(tmp_path / "run")
    with pytest.raises(SettingsError, match="the source of this run was in memory; give source and target again"):
        adapt(out=tmp_path / "run", resume=True)
    assert adapt(*data(), tmp_path / "run", resume=True).chosen == 2
