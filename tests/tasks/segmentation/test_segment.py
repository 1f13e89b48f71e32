"""`paretoda.segment` from arrays and folders to label maps: every method, resumed, saved and read again."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from tasks.segmentation.conftest import QUICK, goes_on_to_the_same_bytes

from paretoda import segment
from paretoda.data.segmentation import open_scenes
from paretoda.errors import RunError, SettingsError
from paretoda.objectives.segmentation import SEGMENTATION_METHODS
from paretoda.report.label_maps import to_hex
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.model_files import read_task
from paretoda.tasks.segmentation.evaluation import measure_maps
from paretoda.tasks.segmentation.map_files import FileNames
from paretoda.tasks.segmentation.predictor import load_predictor

METHODS = [name for name in SEGMENTATION_METHODS if name != "cycada"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scheme", ["linear", "paretoda"])
def test_every_method_trains_under_the_sum_and_under_paretoda(streets, method, scheme):
    source, target, _ = streets
    loss = "none" if method == "source-only" else "tcm"
    options = ["alignment.warm_up=0.1"] if method in ("cbst", "crst") else []
    run = segment(source, target, method=method, target_loss=loss, scheme=scheme, options=options, **QUICK)
    assert len(run.history) == QUICK["steps"]
    assert set(run.history[-1]["losses"]) == set(run.settings.losses)
    assert all(np.isfinite(list(line["losses"].values())).all() for line in run.history)
    maps = run.predict(target[:2])
    assert [found.shape for found in maps] == [target.shape[1:3]] * 2
    assert max(found.max() for found in maps) < len(run.classes)


def test_candidates_vote_by_the_same_pixels(streets):
    source, target, _ = streets
    run = segment(source, target, **{**QUICK, "select": "ensv+mano", "evaluate_every": 1})
    assert all(set(row) == {"step", "ensv", "mano"} and 0 <= row["ensv"] <= 1 for row in run.candidates)
    assert len(run.candidates) == QUICK["steps"]


def test_cycada_learns_its_translation_first_and_keeps_it(streets, tmp_path):
    source, target, _ = streets
    options = ["translation.steps=2", "translation.patch=32", "translation.semantic=true"]
    told = []
    from paretoda.run.callbacks import Callbacks

    callbacks = Callbacks(progress=lambda *what: told.append(what))
    segment(source, target, tmp_path / "run", method="cycada", options=options, callbacks=callbacks, **QUICK)
    assert ("learning the translation", 2, 2) in told
    assert (tmp_path / "run" / "translation.safetensors").is_file()


def test_training_lowers_the_loss_and_helps_on_the_target(streets):
    source, target, truth = streets
    run = segment(
        source, target, method="source-only", steps=60, batch_size=4, select="last", evaluate_every=60, device="cpu"
    )
    first, last = run.history[0]["losses"]["source"], run.history[-1]["losses"]["source"]
    assert last < 0.6 * first
    found = measure_maps(run.model, open_scenes((target, truth, source[2]), labelled=True))
    layout = found.counts.sum(1).max() / found.counts.sum()
    assert found.scores.accuracy > layout + 0.05, "better than one class for all"


@pytest.mark.parametrize("prior", ["source", "estimated"])
def test_a_stopped_run_goes_on_to_the_same_weights(streets, tmp_path, prior):
    source, target, _ = streets
    settings = {**QUICK, "method": "advent", "checkpoint_every": 2, "momentum": 0.8}
    settings["options"] = [f"target.prior={prior}"]
    goes_on_to_the_same_bytes(source, target, tmp_path, settings)


def test_a_run_directory_has_maps_a_page_and_a_model_that_predicts_alone(folders, tmp_path):
    source, target = folders / "source", folders / "target" / "images"
    run = segment(source, target, tmp_path / "run", method="minent", **QUICK)
    directory = RunDirectory(tmp_path / "run")
    assert read_task(directory.description) == "segmentation"
    found = sorted(directory.maps.glob("*.png"))
    assert [path.stem for path in found] == [f"{place:03d}" for place in range(24)]
    with Image.open(found[3]) as picture:
        assert picture.mode == "P"
        stored = np.asarray(picture)
    alone = load_predictor(directory.model, directory.description)
    samples = open_scenes(target, labelled=False)
    assert np.array_equal(next(alone.scenes(samples, places=[3])).labels, stored)
    page = directory.report.read_text()
    assert page.count('class="views"') == 8
    assert "Overlap (IoU), held-out source" in page
    key = page.split("Images of the target")[1].split('class="views"')[0]
    assert all(
        f'<i style="--own:{colour}"></i>{name}</li>' in key
        for name, colour in zip(run.classes, to_hex(run.model.colours), strict=True)
    )
    assert "oracle" not in page.split("<body")[1].lower().replace("oracle accuracy", "")
    refined = alone.probabilities(samples.read([0])[0], refined=True)
    torch.testing.assert_close(refined.sum(0), torch.ones(48, 64))
    assert not refined.equal(run.model.probabilities(samples.read([0])[0]))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"method": "clan", "levels": 2}, "clan has two classifiers of one level"),
        ({"source_size": "32x24", "bn": "joint"}, "leave out --bn joint"),
        ({"options": ["alignment.priors=3"], "method": "cbst"}, "alignment.priors is true or false"),
        ({"augment": "strong"}, "--augment strong is for classification"),
        ({"options": ["target.prior=even"]}, "target.prior is source, estimated, uniform or a number for each class"),
        ({"target_loss": "im", "options": ["target.prior=estimated"]}, "target.prior=estimated is for tcm"),
        ({"translation": "fda", "options": ["translation.gamma=1"]}, "'fda' has no option 'gamma'"),
    ],
)
def test_what_does_not_fit_together_is_said_before_the_training(streets, settings, sentence):
    with pytest.raises((SettingsError, ValueError), match=sentence):
        segment(streets[0], streets[1], **{**QUICK, **settings})


@pytest.mark.parametrize("scheme", ["linear", "paretoda"])
def test_self_training_begins_on_time_however_rare_the_looks_at_the_whole_sets_are(streets, scheme):
    """With 200 steps and a look at every hundredth, CBST once was source-only: no look came after its beginning."""
    source, target, _ = streets
    settings = {**QUICK, "steps": 10, "evaluate_every": 10, "refresh_every": 100, "select": "last"}
    settings |= {"target_loss": "none" if scheme == "linear" else "im", "joined": False, "scheme": scheme}
    run = segment(source, target, method="cbst", **settings)
    taught = [line["losses"]["alignment"] > 0 for line in run.history]
    assert taught == [False] * 6 + [True] * 4


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_with_one_image_of_each_domain(streets, method):
    """As the published codes do."""
    source, target, _ = streets
    options = ["alignment.warm_up=0.1"] if method in ("cbst", "crst") else []
    run = segment(source, target, method=method, options=options, **{**QUICK, "batch_size": 1, "select": "last"})
    assert np.isfinite([loss for line in run.history for loss in line["losses"].values()]).all()
    assert run.settings.batch_size == 1


@pytest.mark.parametrize("levels", [1, 2])
def test_two_levels_and_spatial_priors_and_other_sizes_work(streets, levels):
    source, target, _ = streets
    more = {"levels": levels, "source_size": "80x56", "norm": "group"}
    run = segment(source, target, method="adasegnet", **more, **QUICK)
    assert run.model.model.architecture.levels == levels
    priors = segment(source, target, method="cbst", options=["alignment.priors=true"], **QUICK)
    assert priors.chosen > 0


def test_damaged_models_are_refused_with_a_sentence(folders, tmp_path):
    segment(folders / "source", folders / "target", tmp_path / "run", method="source-only", **QUICK)
    directory = RunDirectory(tmp_path / "run")
    facts = json.loads(directory.description.read_text())
    facts["colours"] = facts["colours"][:-1]
    directory.description.write_text(json.dumps(facts))
    with pytest.raises(RunError, match="names and 10 colours"):
        load_predictor(directory.model, directory.description)
    directory.model.write_bytes(b"nonsense")
    with pytest.raises(RunError, match="damaged or not a model"):
        load_predictor(directory.model, directory.description)


def test_names_of_images_never_leave_the_folder_and_never_meet():
    name = FileNames()
    given = ["a/b.png", "../../etc/passwd.png", "/root/x.jpg", "a/b.jpg", "..\\c.png", ".."]
    assert [name(each) for each in given] == ["a/b", "etc/passwd", "root/x", "a/b-2", "c", "image"]
