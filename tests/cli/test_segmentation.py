"""Segmentation from the command line: doctor, adapt, predict, evaluate, report, list, and common mistakes."""

import json
import shutil

import numpy as np
import pytest
from cli.processes import command
from PIL import Image
from tasks.segmentation.conftest import folders, streets  # noqa: F401  (fixtures)

QUICK = ("--steps", "4", "--batch-size", "2", "--evaluate-every", "2", "--refresh-every", "2", "--device", "cpu")


@pytest.fixture(scope="module")
def adapted(folders, tmp_path_factory):  # noqa: F811
    run = tmp_path_factory.mktemp("scenes") / "run"
    given = ("--task", "segmentation", "--source", folders / "source", "--target", folders / "target")
    end = command("adapt", *given, "--out", run, *QUICK)
    assert end.code == 0, end.err
    assert "paretoda predict" in end.out
    assert "--out FOLDER" in end.out
    return run


def test_the_doctor_accepts_what_adapt_accepts(folders, inside):  # noqa: F811
    end = inside("doctor", "--task", "segmentation", "--source", folders / "source", "--target", folders / "target")
    assert end.code == 0, end.out
    assert "adapt accepts these data" in end.out


def test_predict_writes_label_maps_and_overlays(adapted, folders, tmp_path, inside):  # noqa: F811
    end = inside("predict", adapted, folders / "target" / "images", "--out", tmp_path / "maps", "--json")
    assert end.code == 0, end.err
    assert json.loads(end.out.splitlines()[-1])["samples"] == 24
    with Image.open(tmp_path / "maps" / "000.png") as labels, Image.open(tmp_path / "maps" / "000-overlay.png") as over:
        assert labels.mode == "P"
        assert labels.size == over.size == (64, 48)
    assert (tmp_path / "maps" / "predictions.csv").read_text().count("\n") == 25


def test_evaluate_gives_the_overlap_of_all_images_as_one(adapted, folders, inside):  # noqa: F811
    end = inside("evaluate", adapted, folders / "target", "--json")
    assert end.code == 0, end.err
    found = json.loads(end.out.splitlines()[-1])
    assert found["used_labels"]
    values = [value for value in found["per_class"].values() if value is not None]
    assert found["miou"] == pytest.approx(np.mean(values))
    assert found["classes_counted"] == len(values)
    refined = inside("evaluate", adapted, folders / "target", "--refined", "--json")
    assert refined.code == 0, refined.err


def test_report_with_labels_shows_the_truth_as_oracle(adapted, folders, tmp_path, inside):  # noqa: F811
    plain = inside("report", adapted, "--out", tmp_path / "plain.html")
    assert plain.code == 0, plain.err
    assert (tmp_path / "plain.html").read_text() == (adapted / "report.html").read_text()
    end = inside("report", adapted, "--labelled", folders / "target", "--out", tmp_path / "page.html")
    assert end.code == 0, end.err
    page = (tmp_path / "page.html").read_text()
    assert "Overlap (IoU), target (oracle)" in page
    assert "oracle's labels of" in page


@pytest.mark.parametrize("what", ["methods", "target-losses", "schemes", "guides", "validators", "backbones"])
def test_list_shows_the_names_of_the_task(what, inside):
    end = inside("list", what, "--task", "segmentation", "--json")
    names = json.loads(end.out.splitlines()[-1])[what]
    assert all(names.values())
    assert ("advent" in names) == (what == "methods")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("predict", "RUN", "DATA"), "say where they go, with --out FOLDER"),
        (("predict", "RUN", "DATA", "--out", "OUT", "--crops", "10"), "leave out --crops"),
        (("evaluate", "RUN", "DATA/images"), "label"),
        (("adapt", "--task", "segmentation", "--frozen", "--out", "OUT"), "only for --task classification"),
        (("adapt", "--method", "advent", "--out", "OUT"), "'advent' is for --task segmentation"),
        (("adapt", "--task", "segmentation", "--size", "160", "--out", "OUT"), "a size is WIDTHxHEIGHT"),
    ],
)
def test_mistakes_are_one_sentence(given, sentence, adapted, folders, tmp_path, inside):  # noqa: F811
    places = {"RUN": adapted, "DATA": folders / "target", "OUT": tmp_path / "out"}
    end = inside(*(str(places.get(part, part)).replace("DATA", str(folders / "target")) for part in given))
    assert end.code == 2
    assert sentence in end.err
    assert "Traceback" not in end.err


def test_a_missing_partner_and_a_wrong_label_are_named(folders, tmp_path, inside):  # noqa: F811
    source = tmp_path / "source"
    shutil.copytree(folders / "source", source)
    (source / "labels" / "003.png").unlink()
    given = ("--task", "segmentation", "--source", source, "--target", folders / "target")
    end = inside("adapt", *given, "--out", tmp_path / "run", *QUICK)
    assert end.code == 2
    assert "003.png" in end.err
    Image.fromarray(np.full((48, 64), 77, np.uint8)).save(source / "labels" / "003.png")
    end = inside("doctor", *given)
    assert end.code == 2
    assert "77" in end.out
    assert "003.png" in end.out
