"""Runs of a segmentation benchmark: drawn streets, .npz files, the oracle's row."""

import numpy as np
import pytest

from paretoda.bench.contenders import ORACLE, Contender, RunSpec, cross, plan, read_contenders, run_folder
from paretoda.bench.execute import execute_run
from paretoda.bench.loading import open_part
from paretoda.bench.suites import SUITES
from paretoda.data.drawn.streets import DRIVING_CLASSES
from paretoda.data.segmentation import open_scenes
from paretoda.errors import DataError
from paretoda.report.tables import make_table
from paretoda.tasks.segmentation.suites import SEGMENTATION_SUITES
from paretoda.tasks.suites import Part, Suite, SuiteTask

SETTINGS = {"task": "segmentation", "size": "48x36"}


def load_scenes(part, data):
    return open_scenes(open_part(part, data, data), labelled=True)


QUICK = {**SETTINGS, "steps": 2, "batch_size": 2, "evaluate_every": 1, "device": "cpu"}


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    parts = Part("driving/1/0", 6), Part("driving/0/1", 20), Part("driving/0/2", 3)
    suite = Suite(
        "tiny", {"flat-muted": SuiteTask(parts[0], parts[1], SETTINGS, parts[2])}, measure="miou", task="segmentation"
    )
    monkeypatch.setitem(SUITES, "tiny", suite)
    return suite


def row(settings, tmp_path):
    return execute_run(RunSpec("tiny", "flat-muted", Contender("one", settings), 0), None, tmp_path / "data")


def test_a_run_has_overlaps_for_the_table_and_its_weights(tiny, tmp_path):
    found = row({**QUICK, "method": "advent"}, tmp_path)
    assert set(found["miou"]) == {"chosen", "last"}
    assert set(found["per_class"]["last"]) == set(DRIVING_CLASSES)
    present = [value for value in found["per_class"]["last"].values() if value is not None]
    assert found["miou"]["last"] == pytest.approx(np.mean(present))
    assert set(found["weights"]) == {"source", "target"}  # advent whole is one objective
    table = make_table([found], kind="last", measure=tiny.measure)
    assert "miou" in table.caption


def test_the_runs_own_files_are_kept_where_that_is_wanted(tmp_path):
    spec = RunSpec("tiny", "flat-muted", Contender("one", {**QUICK, "method": "source-only"}), 0, keep=True)
    execute_run(spec, None, tmp_path / "data")
    assert (run_folder(tmp_path, spec) / "model.safetensors").is_file()


def test_the_oracles_row_is_trained_on_the_target_and_its_key_is_another(tmp_path):
    plain = {**QUICK, "method": "source-only"}
    specs = [
        RunSpec("tiny", "flat-muted", Contender("one", settings), 0) for settings in (plain, {**plain, ORACLE: True})
    ]
    assert specs[0].key != specs[1].key
    assert specs[1].settings[ORACLE] is True
    assert specs[1].steps == 2
    one, other = row(plain, tmp_path), row({**plain, ORACLE: True}, tmp_path)
    assert one["miou"] != other["miou"]
    assert "There is no target" not in str(other)


def test_contenders_of_a_file_and_of_a_cross_know_their_task(tmp_path, tiny):
    (tmp_path / "c.toml").write_text('["a"]\nmethod = "cbst"\n["b"]\nmethod = "source-only"\noracle = true\n')
    same = {"task": "segmentation"}
    found = read_contenders(tmp_path / "c.toml", same) + cross(["fda"], ["none", "tcm"], ["linear"], **same)
    assert [each.name for each in found] == ["a", "b", "fda, sum", "fda+tcm, sum"]
    assert len(plan("tiny", tiny, found, seeds=2)) == 8


def test_what_a_segmentation_suite_cannot_do_is_said(tmp_path):
    with pytest.raises(DataError, match="leave out --baselines"):
        row({"baseline": "logistic-z"}, tmp_path)
    with pytest.raises(DataError, match=r"nowhere\.npz is missing"):
        load_scenes(Part("nowhere.npz"), tmp_path)
    with pytest.raises(DataError, match="name their folder"):
        load_scenes(Part("nowhere.npz"), None)


def test_files_with_a_plus_are_one_domain(tmp_path):
    for name, count in (("a", 2), ("b", 3)):
        x, y = np.zeros((count, 4, 5, 3), np.uint8), np.ones((count, 4, 5), np.uint8)
        np.savez(tmp_path / f"{name}.npz", x=x, y=y, classes=np.array(["sky", "road"]))
    scenes = load_scenes(Part("a.npz+b.npz"), tmp_path)
    assert len(scenes) == 5
    assert scenes.classes == ("sky", "road")


def test_a_camera_that_looks_up_or_down_sees_the_classes_otherwise_often():
    def road(look):
        scenes = load_scenes(Part(f"driving/0/1{look}", 12), None)
        images, maps = scenes.read(range(12)), scenes.read_labels(range(12))
        assert {image.shape for image in images} == {(120, 160, 3)}
        return np.mean([label == DRIVING_CLASSES.index("road") for label in maps])

    assert road("/up") < road("") - 0.1 < road("/down") - 0.2


def test_the_real_camvid_is_where_the_suites_say(shared_data):
    for name in ("camvid", "camvid-dusk"):
        for task in SEGMENTATION_SUITES[name].tasks.values():
            assert task.test is not None
            classes = {load_scenes(part, shared_data).classes for part in (task.target, task.test)}
            assert classes == {DRIVING_CLASSES}
    assert len(load_scenes(SEGMENTATION_SUITES["camvid"].tasks["driving-camvid"].target, shared_data)) == 367
