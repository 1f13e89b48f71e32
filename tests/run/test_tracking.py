"""What a run writes for those who watch it: TensorBoard's events and the table say what metrics.jsonl says."""

import io
import json
import sys
import threading
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from paretoda import adapt
from paretoda.errors import SettingsError
from paretoda.run.directory.tables import metrics_table, scalars
from paretoda.run.tracking import check_tracker, open_tracker
from paretoda.tasks.settings import make_settings

SMALL = {"steps": 8, "bottleneck": 8, "batch_size": 16, "reference": False, "checkpoint_every": 2, "evaluate_every": 4}

TENSORBOARD = pytest.mark.skipif(find_spec("tensorboard") is None, reason="TensorBoard is not installed")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = 4 * np.eye(3, 5)[y] + rng.normal(size=(60, 5))
    return (x, y), x + 1


def events(folder):
    """Name -> [(step, value), ...] as TensorBoard's own reader sees them."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    reader = accumulator.EventAccumulator(str(folder / "tensorboard"))
    reader.Reload()
    return {tag: [(e.step, e.value) for e in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@TENSORBOARD
def test_the_events_are_the_metrics_the_rate_and_the_scores(data, tmp_path):
    run = adapt(*data, tmp_path / "run", track="tensorboard", **SMALL)
    found = events(tmp_path / "run")
    for line in lines(tmp_path / "run"):
        for name, value in scalars(line).items():
            assert (line["step"], pytest.approx(value)) in found[name], name
    assert {name for name in found if name.startswith("loss/")} == {f"loss/{name}" for name in run.settings.losses}
    assert [step for step, _ in found["weight/source"]] == list(range(1, 9))
    rates = [rate for _, rate in found["lr"]]
    assert rates[0] == pytest.approx(0.1)
    assert rates == sorted(rates, reverse=True)
    for candidate in run.candidates:
        for name in set(candidate) - {"step"}:
            assert (candidate["step"], pytest.approx(candidate[name])) in found[f"score/{name}"]


@TENSORBOARD
def test_a_stopped_run_goes_on_without_a_step_twice_and_its_weights_do_not_care(data, tmp_path):
    def stop(taken, _report):
        if taken == 7:
            raise RuntimeError("killed")

    threads = threading.active_count()
    with pytest.raises(RuntimeError, match="killed"):
        adapt(*data, tmp_path / "part", track="tensorboard", after=[stop], **SMALL)
    assert threading.active_count() == threads  # the writer's has ended, and all is on the disk
    assert [step for step, _ in events(tmp_path / "part")["lr"]] == [1, 2, 3, 4, 5, 6, 7]
    adapt(*data, tmp_path / "part", resume=True)
    adapt(*data, tmp_path / "whole", track="tensorboard", **SMALL)
    adapt(*data, tmp_path / "plain", **SMALL)
    assert events(tmp_path / "part") == events(tmp_path / "whole")
    assert not (tmp_path / "plain" / "tensorboard").exists()
    for name in ("model.safetensors", "metrics.jsonl", "metrics.csv", "predictions.csv"):
        for folder in ("part", "whole"):
            assert (tmp_path / folder / name).read_bytes() == (tmp_path / "plain" / name).read_bytes(), name


@TENSORBOARD
def test_a_new_run_in_the_same_place_begins_new_curves(data, tmp_path):
    for steps in (4, 2):
        adapt(*data, tmp_path, overwrite=True, track="tensorboard", **SMALL | {"steps": steps})
    assert [step for step, _ in events(tmp_path)["lr"]] == [1, 2]


@TENSORBOARD
def test_tracking_may_begin_when_a_run_is_resumed(data, tmp_path):
    def stop(taken, _report):
        if taken == 4:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        adapt(*data, tmp_path, after=[stop], **SMALL)
    adapt(*data, tmp_path, resume=True, track="tensorboard")
    assert [step for step, _ in events(tmp_path)["lr"]] == [5, 6, 7, 8]


def test_what_is_missing_is_said_before_anything_is_read(tmp_path, monkeypatch):
    with pytest.raises(SettingsError, match="--track tensorboard writes into the run's directory: give out"):
        adapt("nowhere", "nothing", track="tensorboard")
    for name in [name for name in sys.modules if name.startswith(("tensorboard", "torch.utils.tensorboard"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(SettingsError, match=r'pip install "paretoda\[track\]"'):
        adapt("nowhere", "nothing", tmp_path / "run", track="tensorboard")
    assert not (tmp_path / "run").exists()
    check_tracker(make_settings({}), None)


def test_who_has_no_directory_writes_nothing():
    with open_tracker(make_settings({"track": "tensorboard"}), None, 0) as tracker:
        assert tracker.writer is None
        tracker.scores(1, {"im": 0.5})
        tracker.flush()


def test_the_table_is_the_lines(data, tmp_path):
    adapt(*data, tmp_path, **SMALL)
    table = pd.read_csv(tmp_path / "metrics.csv", dtype=str).astype({"step": int})
    assert table["step"].tolist() == list(range(1, 9))
    for (_, row), line in zip(table.iterrows(), lines(tmp_path), strict=True):
        assert row["move"] == line["move"]
        assert {name: float(row[name]) for name in scalars(line)} == scalars(line)


def test_numbers_that_are_not_there_are_empty_cells():
    plain = {"step": 1, "losses": {"a": 1.5, "b": None}, "weights": {"a": 1.0, "b": 0.0}, "move": "skipped"}
    bare = {**plain, "cosines": None, "guide_loss": None, "guide_cosines": None, "finite": False}
    full = {**bare, "step": 2, "losses": {"a": 1.0, "b": 2.0}, "cosines": [[1, 0.5], [0.5, 1]], "finite": True}
    table = pd.read_csv(io.StringIO(metrics_table([bare, full])))
    assert table.columns.tolist() == ["step", "move", "finite", *scalars(bare), "loss/b", "cosine/a/b"]
    assert table["loss/b"].isna().tolist() == [True, False]
    assert table["finite"].tolist() == [False, True]
    assert table["cosine/a/b"].tolist()[1] == 0.5
