"""Label files that are read as another data set's classes: GTA5 to CamVid, and means over some classes."""

import numpy as np
import pytest
from cli.processes import command
from data.segmentation.conftest import Writer
from tasks.segmentation.conftest import folders, streets  # noqa: F401  (fixtures)

from paretoda.data.segmentation.label_tables import CAMVID, TABLES

QUICK = ("--steps", "2", "--batch-size", "2", "--size", "32x24", "--select", "last", "--device", "cpu")
TABLE = "cityscapes-as-camvid"


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """The folders of GTA5 and CamVid."""
    writer = Writer(tmp_path_factory.mktemp("sets"))
    return writer.gta5(6), writer.camvid(20)


@pytest.fixture(scope="module")
def adapted(sets, tmp_path_factory):
    run = tmp_path_factory.mktemp("tables") / "run"
    given = ("--task", "segmentation", "--source", sets[0], "--target", sets[1])
    end = command("adapt", *given, "--source-table", TABLE, "--out", run, *QUICK)
    assert end.code == 0, end.err
    return run


def test_the_doctor_says_which_option_helps_and_it_does(sets, inside):
    given = ("doctor", "--task", "segmentation", "--source", sets[0], "--target", sets[1])
    end = inside(*given)
    assert end.code == 2
    assert "--source-table NAME" in " ".join(end.out.split())
    end = inside(*given, "--source-table", TABLE)
    assert end.code == 0, end.out
    assert "bicyclist" in end.out


def test_a_run_has_the_classes_of_the_table_and_is_measured_with_it_or_without(adapted, sets, inside):
    found = inside("evaluate", adapted, sets[1] / "test", "--json").last_line
    assert tuple(found["per_class"]) == CAMVID.names
    assert inside("evaluate", adapted, sets[0], "--table", TABLE, "--json").last_line["samples"] == 6
    sentence = inside("evaluate", adapted, sets[0]).sentence
    assert "the model has sky, building" in sentence
    assert "--table NAME" in sentence


def test_the_mean_may_be_over_some_classes(adapted, sets, inside):
    found = inside("evaluate", adapted, sets[1] / "test", "--classes", "road, car,road", "--json").last_line
    assert found["classes"] == ["road", "car"]
    assert found["classes_counted"] == 2
    assert found["miou"] == pytest.approx(np.mean([found["per_class"][name] for name in ("road", "car")]))
    everything = inside("evaluate", adapted, sets[1] / "test", "--json").last_line
    assert everything["per_class"] == found["per_class"]
    assert everything["miou"] != found["miou"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("evaluate", "RUN", "CAMVID", "--classes", "roads"), "there is no class 'roads'; did you mean 'road'?"),
        (("evaluate", "RUN", "CAMVID", "--classes", ","), "--classes takes names of classes"),
        (("evaluate", "RUN", "CAMVID", "--table", "kitti"), "there is no label table 'kitti'; choose from cityscapes"),
        (("adapt", "--task", "segmentation", "--source-table", "kitti", "--out", "OUT"), "no label table 'kitti'"),
        (("adapt", "--source-table", "camvid", "--out", "OUT"), "only for --task segmentation"),
        (
            ("doctor", "--source", "CAMVID", "--target", "CAMVID", "--source-table", "camvid"),
            "--source-table: only for --task segmentation",
        ),
        (
            ("doctor", "--suite", "office31", "--source-table", "camvid"),
            "leave out --source, --target, --target-labels",
        ),
    ],
)
def test_mistakes_are_one_sentence(given, sentence, adapted, sets, tmp_path, inside):
    places = {"RUN": adapted, "CAMVID": sets[1] / "test", "OUT": tmp_path / "out"}
    assert sentence in inside(*(places.get(part, part) for part in given)).sentence


def test_every_table_is_listed(inside):
    found = inside("list", "tables", "--json").last_line["tables"]
    assert list(found) == list(TABLES)
    assert all(found.values())
