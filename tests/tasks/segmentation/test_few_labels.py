"""A few labelled images of the target: as a loss, as the guide and for the choice; nothing else is read."""

import numpy as np
import pytest
import torch
from tasks.segmentation.conftest import QUICK, SIZE, goes_on_to_the_same_bytes

from paretoda import segment
from paretoda.data.segmentation.target_labels import label_scenes, open_labelled_scenes
from paretoda.data.segmentation.transforms import CONVENTIONS, SceneTransform
from paretoda.errors import DataError, SettingsError
from paretoda.objectives.segmentation import PixelLabels
from paretoda.objectives.segmentation.pixel_cross_entropy import pixel_cross_entropy
from paretoda.run.directory.directory import RunDirectory
from paretoda.tasks import SEGMENTATION, find_task
from paretoda.types import IGNORE, LabelledTarget, Source

SUM = {"method": "source-only", "target_loss": "im", "scheme": "linear"}


@pytest.fixture(scope="module")
def few(streets):
    (_, _, classes), z, truth = streets
    return z[:4], truth[:4], classes


def test_the_loss_is_the_cross_entropy_of_labelled_pixels():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 3, 4, 4, generator=generator)
    labels = torch.randint(3, (2, 8, 8), generator=generator)
    labels[:, :4] = IGNORE
    target = LabelledTarget(logits, logits, torch.arange(2), labels=labels)
    source = Source(logits, logits, torch.arange(2), labels=labels)
    found = PixelLabels(features=3, classes=3, strength=0.5)(source, target)
    torch.testing.assert_close(found, 0.5 * pixel_cross_entropy(logits, labels))


@pytest.mark.parametrize(
    ("chosen", "trains", "guides"),
    [({}, True, False), ({"guide": "labels"}, False, True), ({"guide": "labels", "label_loss": True}, True, True)],
)
def test_labels_train_or_guide_as_they_are_asked_to(streets, few, chosen, trains, guides):
    source, z, _ = streets
    run = segment(source, z, target_labels=few, target_loss="im", **{**QUICK, "steps": 2}, **chosen)
    plain = segment(source, z, target_loss="im", **{**QUICK, "steps": 2})
    assert ("labels" in run.history[0]["losses"]) == trains
    assert (run.history[0]["guide_loss"] != plain.history[0]["guide_loss"]) == guides
    assert run.settings.head_losses == (("source", "labels") if chosen.get("label_loss", not chosen) else ("source",))


def test_labels_help(streets, few):
    source, z, truth = streets
    wrong = source[0], (source[1] + 1) % len(source[2]), source[2]  # a source that teaches the wrong classes
    settings = {**QUICK, **SUM, "target_loss": "none", "steps": 30, "select": "last", "evaluate_every": 30}
    alone = segment(wrong, z, **settings)
    helped = segment(wrong, z, target_labels=few, label_loss=True, options=("labels.strength=5",), **settings)
    shares = [np.mean(np.array(run.predict(z)) == truth) for run in (alone, helped)]
    assert shares[1] > shares[0] + 0.2, shares


def test_the_model_is_chosen_by_images_that_train_nothing(streets, few):
    source, z, _ = streets
    run = segment(source, z, target_labels=few, select="labels", **SUM, **QUICK)
    best = max(run.candidates, key=lambda row: (row["labels"], row["step"]))
    assert run.chosen == best["step"]
    assert run.scores["labels"] < 0


def test_a_run_is_resumed_to_the_same_bytes_and_says_what_was_labelled(folders, tmp_path):
    goes_on_to_the_same_bytes(
        folders / "source",
        folders / "target" / "images",
        tmp_path,
        {**QUICK, **SUM, "target_labels": folders / "target", "checkpoint_every": 3},
    )
    _, inputs = RunDirectory(tmp_path / "whole").read_config()
    assert inputs["target_labels"] == str(folders / "target")
    assert "24 target images are labelled: 24 train." in (tmp_path / "whole" / "results.json").read_text()
    assert "semi-supervised" in (tmp_path / "whole" / "README.md").read_text()


def test_mistakes_are_told_in_one_sentence(streets):
    source, z, truth = streets
    classes = source[2]
    with pytest.raises(DataError, match=f"have 2 classes .*the source has {len(classes)}"):
        segment(source, z, target_labels=(z[:2], truth[:2] % 2, ["road", "sky"]), **QUICK)
    with pytest.raises(DataError, match="number the classes of the source differently"):
        segment(source, z, target_labels=(z[:2], truth[:2], classes[::-1]), **QUICK)
    with pytest.raises(DataError, match="no pixel of the labelled target images has a label"):
        segment(source, z, target_labels=(z[:2], np.full_like(truth[:2], IGNORE), classes), **QUICK)
    with pytest.raises(DataError, match="a single labelled target image cannot both train and be held out"):
        segment(source, z, target_labels=(z[:1], truth[:1], classes), select="labels", **QUICK)
    with pytest.raises(SettingsError, match="need labelled target samples; give --target-labels"):
        segment(source, z, guide="labels", **QUICK)


def test_labelled_images_are_read_as_the_target_is(few):
    scenes = open_labelled_scenes(few, tuple(few[2]))
    transform = SceneTransform((SIZE[1] // 2, SIZE[0] // 2), CONVENTIONS["torchvision"])
    found = label_scenes(scenes, transform, np.array([0, 2]), np.array([1, 3]), guides=True)
    inputs, maps = found.read_training(seed=0, step=0, most=8)
    assert inputs.shape == (2, 3, SIZE[0] // 2, SIZE[1] // 2)
    assert maps.shape == (2, SIZE[0] // 2, SIZE[1] // 2)
    assert maps.dtype == torch.int64
    assert sorted(found.read_guide(seed=0, step=0, most=8)[2].tolist()) == [1, 3]


def test_the_doctor_examines_them(streets, few):
    source, z, _ = streets
    task = find_task(SEGMENTATION)
    good = task.examine_target_labels(few, source, z, skip_bad=False, progress=None)
    assert good[-1].message.startswith("4 target images with ")
    assert not [finding for finding in good if finding.severity == "error"]
    nothing = (few[0], np.full_like(few[1], IGNORE), few[2])
    bad = task.examine_target_labels(nothing, source, z, skip_bad=False, progress=None)
    assert "No pixel of the labelled target images has a label" in bad[0].message
