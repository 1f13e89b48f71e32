"""`--with` and `--teachers` from the command line: FDA in miniature, and what does not combine."""

import shutil

import numpy as np
import pytest
from cli.processes import command, rows_of
from PIL import Image
from tasks.segmentation.conftest import bands, folders, streets  # noqa: F401  (fixtures)

QUICK = ("--steps", "4", "--batch-size", "2", "--evaluate-every", "2", "--device", "cpu")
FDA = ("--task", "segmentation", "--method", "fda", "--target-loss", "none", "--scheme", "linear", *QUICK)


def test_two_rounds_of_two_bands(folders, tmp_path, inside):  # noqa: F811
    given = ("--source", folders / "source", "--target", folders / "target")
    teachers: tuple[object, ...] = ()
    for number in (0, 1):
        runs = [tmp_path / f"{number}-{beta}" for beta in ("0.01", "0.09")]
        for run in runs:
            options = ("--options", f"translation.beta={run.name[2:]}", *teachers)
            last = number == 1 and run == runs[-1]  # as users call it; the others without seconds of imports
            end = (command if last else inside)("adapt", *given, *FDA, *options, "--out", run)
            assert end.code == 0, end.err
            assert ("The mean of 2 runs labelled" in end.err) == (number == 1)
        teachers = ("--teachers", ",".join(map(str, runs)))
    one, other = (inside("evaluate", run, folders / "target", "--json").last_line for run in runs)
    both = inside("evaluate", runs[0], folders / "target", "--with", runs[1], "--json").last_line
    assert (one["runs"], both["runs"]) == (1, 2)
    assert both["miou"] not in (one["miou"], other["miou"])


def test_label_maps_are_those_of_the_mean(bands, folders, tmp_path, inside):  # noqa: F811
    images, first = folders / "target" / "images", bands / "0.01"
    for name, more in (("alone", ()), ("itself", ("--with", first)), ("both", ("--with", bands / "0.09"))):
        assert inside("predict", first, images, *more, "--out", tmp_path / name).code == 0
    maps = {
        name: np.stack([np.asarray(Image.open(tmp_path / name / f"{n:03d}.png")) for n in range(24)])
        for name in ("alone", "itself", "both")
    }
    assert np.array_equal(maps["alone"], maps["itself"])
    assert not np.array_equal(maps["alone"], maps["both"])


def test_classifications_have_a_mean_as_well(finished, data, tmp_path, inside):
    other = tmp_path / "other"
    given = ("--source", data[0], "--target", data[1], "--out", other, "--steps", 6, "--no-reference", "--seed", 9)
    assert inside("adapt", *given, "--method", "dann+tcm").code == 0
    tables = {}
    runs = {"one": (finished[0],), "two": (other,), "both": (finished[0], "--with", other)}
    for name, (run, *more) in runs.items():
        assert inside("predict", run, data[1], *more, "--out", tmp_path / name).code == 0
        tables[name] = rows_of(tmp_path / name)
    for one, two, both in zip(*tables.values(), strict=True):
        if one["prediction"] == two["prediction"]:
            mean = (float(one["confidence"]) + float(two["confidence"])) / 2
            assert float(both["confidence"]) == pytest.approx(mean, abs=2e-6)
    facts = inside("evaluate", finished[0], data[1], "--with", other, "--json").last_line
    assert facts["runs"] == 2
    said = inside("evaluate", finished[0], data[1], "--with", other, "--abstain-below", 0.5)
    assert "Confidences are not calibrated: the mean of several runs has no temperature." in said.err


@pytest.mark.parametrize("verb", ["predict", "evaluate"])
def test_what_does_not_combine_is_one_sentence(verb, finished, data, bands, folders, tmp_path, inside):  # noqa: F811
    run, scenes = finished[0], bands / "0.01"
    bare, half = tmp_path / "bare", tmp_path / "half"
    shutil.copytree(bands / "other", half)
    (half / "model.safetensors").unlink()
    shutil.copytree(run, bare)
    text = (bare / "model.json").read_text(encoding="utf-8")
    (bare / "model.json").write_text(text.replace('"cat"', '"cow"'), encoding="utf-8")
    cases = [
        (run, data[1], bare, (), "runs of different classes have no mean: run 2 has cow"),
        (run, data[1], scenes, (), "is one of segmentation: only runs of one task have a mean"),
        (run, data[1], run, ("--calibrated",), "the mean of several runs has no temperature; leave out --calibrated"),
        (run, data[1], run, ("--preference", "1,1,1"), "a preference is for one run; leave out --preference or --with"),
        (run, data[1], tmp_path / "nowhere", (), "nowhere is missing: give the directory of a finished run"),
        (scenes, folders / "target", run, (), "only runs of one task have a mean"),
        (scenes, folders / "target", bands / "other", (), "runs of different classes have no mean: run 2 has sky"),
        (scenes, folders / "target", half, (), "model.safetensors is missing: the run has not finished"),
        (scenes, folders / "target", bands / "0.09", ("--calibrated",), "confidences of pixels are not calibrated"),
    ]
    out = ("--out", tmp_path / "out") if verb == "predict" else ()
    for first, given, second, more, sentence in cases:
        assert sentence in inside(verb, first, given, "--with", second, *more, *out).sentence
    assert not (tmp_path / "out").exists()


def test_refined_predictions_want_discriminators_in_every_run(bands, folders, tmp_path, inside):  # noqa: F811
    given = ("--source", folders / "source", "--target", folders / "target", "--out", tmp_path / "plain")
    assert inside("adapt", *given, *FDA).code == 0
    end = inside("evaluate", bands / "0.01", folders / "target", "--with", tmp_path / "plain", "--refined")
    assert "was not trained with the target loss 'tcm'" in end.sentence
    assert inside("evaluate", bands / "0.01", folders / "target", "--with", bands / "0.09", "--refined").code == 0


def test_a_classifier_cannot_teach(finished, folders, tmp_path, inside):  # noqa: F811
    given = ("--source", folders / "source", "--target", folders / "target", "--out", tmp_path / "run")
    end = inside("adapt", *given, *FDA, "--teachers", finished[0])
    assert "--teachers: the run in" in end.sentence
    assert "is one of classification; teachers are runs of segmentation" in end.sentence
