"""Finished runs label the target for the next round of FDA: which pixels, of which images, and after a stop."""

import math
import shutil

import numpy as np
import pytest
import torch
from tasks.segmentation.conftest import QUICK, same

from paretoda import segment
from paretoda.errors import RunError, SettingsError
from paretoda.maps import resize_labels
from paretoda.objectives.segmentation import FdaEntropy
from paretoda.run.callbacks import Callbacks
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.settings import source_only
from paretoda.tasks.loading import load_ensemble
from paretoda.tasks.segmentation.build import build
from paretoda.tasks.segmentation.inputs import open_inputs
from paretoda.tasks.segmentation.teachers import label_target, open_teachers, teacher_labels
from paretoda.tasks.settings import make_settings
from paretoda.types import IGNORE

CPU = torch.device("cpu")
FDA = {**QUICK, "method": "fda", "target_loss": "none", "scheme": "linear"}
SIZE = (12, 16)
"""Of the features of images of 48x64."""


@pytest.fixture
def paths(bands):
    return [bands / "0.01", bands / "0.09"]


def pair_of(streets, **more):
    settings = make_settings({"task": "segmentation", **FDA, **more})
    return settings, open_inputs(settings, streets[0], streets[1]).pair


def seen(teachers, pair):
    """Predicted classes and confidences of the target's training images, at the nearest pixels."""
    found = [teachers.probabilities(image).max(0) for image in pair.images("target", range(len(pair.target_train)))]
    confidence, predicted = (torch.stack(maps) for maps in zip(*found, strict=True))
    return resize_labels(predicted, SIZE), resize_labels(confidence, SIZE)


def test_of_every_class_the_upper_third_is_labelled_and_all_above_nine_tenths(paths, streets):
    pair, teachers = pair_of(streets)[1], load_ensemble(paths, CPU)[1]
    labels = teacher_labels(teachers, pair, SIZE, None, None)
    assert labels.dtype == torch.uint8
    assert labels.shape == (len(pair.target_train), *SIZE)
    predicted, confidence = seen(teachers, pair)
    kept = labels != IGNORE
    assert labels[kept].long().equal(predicted[kept])
    for k in range(len(pair.classes)):
        own, taken = confidence[predicted == k], kept[predicted == k]
        if not len(own):
            assert not (labels == k).any()
            continue
        quantile = own.sort().values[min(round(0.66 * len(own)), len(own) - 1)]
        threshold = min(quantile.item(), 0.9)
        assert own[taken].min().item() >= threshold - 1e-6
        assert not len(own[~taken]) or own[~taken].max().item() <= threshold + 1e-6
    never = set(range(len(pair.classes))) - set(predicted.unique().tolist())
    assert never, "this test wants a class that is never predicted"


def test_certain_pixels_are_all_labelled(paths, streets, monkeypatch):
    """Above 0.9 the threshold is 0.9, however many are above it."""
    pair, teachers = pair_of(streets)[1], load_ensemble(paths, CPU)[1]
    sharp = type(teachers).probabilities

    def certain(self, image, *, refined=False):
        return (50 * sharp(self, image, refined=refined).log()).softmax(0)

    monkeypatch.setattr(type(teachers), "probabilities", certain)
    labels = teacher_labels(teachers, pair, SIZE, None, None)
    predicted, confidence = seen(teachers, pair)
    sure = confidence > 0.9 + 1e-6
    assert sure.float().mean() > 0.5
    assert labels[sure].long().equal(predicted[sure])


def test_held_out_images_are_not_read_and_the_progress_is_told(paths, streets, monkeypatch):
    pair, teachers, told = pair_of(streets)[1], load_ensemble(paths, CPU)[1], []
    read, places = type(pair.target.samples).read, []

    def noted(self, index):
        places.extend(np.asarray(index).tolist())
        return read(self, index)

    monkeypatch.setattr(type(pair.target.samples), "read", noted)
    teacher_labels(teachers, pair, SIZE, 0, lambda *what: told.append(what))
    assert len(pair.target_held_out)
    assert sorted(places) == sorted(pair.target_train.tolist())
    assert told[-1] == ("labelling the target", len(places), len(places))
    assert len(told) == len(places)


@pytest.mark.parametrize("joined", [False, True])
def test_the_objective_gets_the_labels_wherever_it_stands(paths, streets, joined):
    settings, pair = pair_of(streets, joined=joined, teachers=paths)
    step, said = build(settings, pair, CPU), []
    label_target(open_teachers(settings, pair, CPU), settings, pair, step, Callbacks(say=said.append))
    (found,) = [part for each in step.objectives.values() for part in each.modules() if isinstance(part, FdaEntropy)]
    wanted = teacher_labels(load_ensemble(paths, CPU)[1], pair, SIZE, None, None)
    assert found.labels.maps.equal(wanted)
    share = (wanted != IGNORE).float().mean().item()
    assert said == [f"The mean of 2 runs labelled {share:.0%} of the target's pixels."]


def test_without_teachers_nothing_changes(streets):
    settings, pair = pair_of(streets)
    assert open_teachers(settings, pair, CPU) is None
    assert not len(build(settings, pair, CPU).objectives["alignment"].labels)


def test_the_loss_is_the_entropy_and_the_cross_entropy_to_the_labels(paths, streets):
    plain = segment(streets[0], streets[1], **FDA)
    taught = segment(streets[0], streets[1], teachers=[str(path) for path in paths], **FDA)
    first, second = (run.history[0]["losses"]["alignment"] for run in (plain, taught))
    assert 0 < first <= 0.005
    assert second - first > 0.1 * math.log(len(plain.classes)), "the network at its beginning knows no labels"
    assert plain.history[0]["losses"]["source"] == taught.history[0]["losses"]["source"]
    assert not same(plain.model.model, taught.model.model)


@pytest.mark.parametrize("stopped", [1, 3], ids=["before the first checkpoint", "after it"])
def test_a_stopped_run_goes_on_to_the_same_bytes_from_another_folder(paths, folders, tmp_path, monkeypatch, stopped):
    for name in ("0.01", "0.09"):
        shutil.copytree(paths[0].parent / name, tmp_path / "work" / name)
    monkeypatch.chdir(tmp_path / "work")
    source, target = folders / "source", folders / "target" / "images"
    settings = {**FDA, "checkpoint_every": 2, "teachers": ["0.01", "0.09"]}
    segment(source, target, tmp_path / "whole", **settings)

    def stop(taken, _report):
        if taken == stopped:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        segment(source, target, tmp_path / "part", after=[stop], **settings)
    monkeypatch.chdir(tmp_path)
    if stopped == 3:  # the labels are in the checkpoint
        shutil.rmtree(tmp_path / "work")
    segment(out=tmp_path / "part", resume=True)
    for name in ("model.safetensors", "predictions.csv"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "part" / name).read_bytes()
    assert RunDirectory(tmp_path / "part").read_config()[0].teachers == tuple(
        str((tmp_path / "work" / name).resolve()) for name in ("0.01", "0.09")
    )
    card = (tmp_path / "whole" / "README.md").read_text()
    assert "| teachers | 0\\.01, 0.09 |" in card, "a card says what runs are called, not where they lie"


def test_a_run_without_adaptation_has_no_teachers(paths):
    settings = make_settings({"task": "segmentation", **FDA, "teachers": paths})
    assert settings.teachers == tuple(map(str, paths))
    assert source_only(settings).teachers == ()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"task": "segmentation", "method": "advent", "teachers": ["x"]}, "teachers are for the method 'fda', not for"),
        ({"task": "segmentation", "teachers": ["x"]}, "teachers are for the method 'fda', not for 'advent'"),
        ({"teachers": ["x"]}, "--teachers: only for --task segmentation"),
        ({"task": "segmentation", "method": "fda", "teachers": "x"}, "teachers: "),
    ],
)
def test_settings_that_would_not_use_them_are_refused(settings, sentence):
    with pytest.raises(SettingsError, match=sentence):
        make_settings(settings)


def test_what_cannot_teach_is_said_before_anything_is_written(bands, streets, tmp_path):
    unfinished = tmp_path / "unfinished"
    shutil.copytree(bands / "0.01", unfinished)
    (unfinished / "model.safetensors").unlink()
    cases = {
        tmp_path / "nowhere": "--teachers: the folder .*nowhere is missing: give the directory of a finished run",
        unfinished: "--teachers: .*model.safetensors is missing: the run has not finished",
        tmp_path: "--teachers: .*model.safetensors is missing: the run has not finished, or this is not a run",
        bands / "other": "--teachers: they have the classes .*unicorn, the source has .*bicyclist",
    }
    for path, sentence in cases.items():
        with pytest.raises(RunError, match=sentence):
            segment(streets[0], streets[1], tmp_path / "run", teachers=[path], **FDA)
    with pytest.raises(RunError, match=r"runs of different classes have no mean: run 2 has .*unicorn"):
        segment(streets[0], streets[1], tmp_path / "run", teachers=[bands / "0.01", bands / "other"], **FDA)
    assert not (tmp_path / "run").exists()
