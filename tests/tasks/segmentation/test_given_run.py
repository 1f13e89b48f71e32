"""Runs of segmentation that begin with another run's model and read no source."""

import numpy as np
import pytest
import torch
from tasks.segmentation.conftest import QUICK, goes_on_to_the_same_bytes

from paretoda import adapt, segment
from paretoda.data.segmentation import ScenePairSettings
from paretoda.errors import DataError, RunError, SettingsError
from paretoda.evaluation.predictions import evaluation_mode
from paretoda.tasks import find_task
from paretoda.tasks.segmentation.given_run import load_given_run, open_given_run


@pytest.fixture(scope="module")
def given(streets, tmp_path_factory):
    """A model of the source alone."""
    source, *_ = streets
    settings = {**QUICK, "steps": 40, "evaluate_every": 40, "method": "source-only"}
    return segment(source, out=tmp_path_factory.mktemp("given") / "run", **settings).directory


def test_the_model_begins_as_the_given_one_and_reads_no_source(streets, given):
    _, z, _ = streets
    before = load_given_run(str(given))
    run = segment(target=z, from_run=given, lr=1e-9, weight_decay=0.0, **{**QUICK, "steps": 2})
    assert set(run.history[0]["losses"]) == {"target"}
    for one, other in zip(run.model.model.parameters(), before.model.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-7)
    assert not {"dev", "source-risk"} & set(run.scores)
    trained = segment(target=z, from_run=given, **QUICK)
    assert any(
        not torch.equal(one, other)
        for one, other in zip(trained.last.model.parameters(), before.model.parameters(), strict=True)
    )
    assert trained.candidates[0]["step"] == 0


def test_the_stand_in_for_the_source_has_the_predicted_labels(streets, given):
    _, z, _ = streets
    predictor = load_given_run(str(given))
    pair = open_given_run(predictor, ScenePairSettings(batch_size=2), z)
    with evaluation_mode(predictor.model):
        wanted = predictor.model(predictor.transform.evaluate(z)).argmax(1).numpy()
    found = pair.source.samples
    assert np.mean(found.maps == wanted) > 0.999  # batches may round differently
    assert [label.shape for label in found.read_labels([0, 1])] == [z[0].shape[:2]] * 2
    assert not pair.target.samples.labelled


@pytest.mark.parametrize("method", ["minent", "cbst", "crst"])
@pytest.mark.parametrize("scheme", ["paretoda", "linear"])
def test_methods_that_read_the_target_alone_train(streets, given, method, scheme):
    _, z, _ = streets
    run = segment(target=z, from_run=given, method=method, scheme=scheme, **{**QUICK, "steps": 2})
    assert set(run.history[0]["losses"]) == {"alignment", "target"}


def test_a_run_is_resumed_to_the_same_bytes(folders, given, tmp_path):
    settings = {**QUICK, "from_run": given, "checkpoint_every": 3}
    goes_on_to_the_same_bytes(None, folders / "target" / "images", tmp_path, settings)
    page = (tmp_path / "whole" / "report.html").read_text()
    assert "source-free" in page
    assert "held-out source" not in page


def test_mistakes_are_told_in_one_sentence(streets, given, tmp_path):
    source, z, _ = streets
    with pytest.raises(SettingsError, match="the method 'advent' needs a source, and --from has none; take one of"):
        segment(target=z, from_run=given, method="advent")
    with pytest.raises(SettingsError, match="'tcm' compares the target with a source"):
        segment(target=z, from_run=given, target_loss="tcm")
    with pytest.raises(SettingsError, match="leave out --size, --levels"):
        segment(target=z, from_run=given, size="32x32", levels=2)
    with pytest.raises(SettingsError, match="leave out --target-loss none"):
        segment(target=z, from_run=given, target_loss="none")
    with pytest.raises(SettingsError, match="leave out --source"):
        segment(source, z, from_run=given)
    with pytest.raises(DataError, match="the target has 5 images; collect at least"):
        segment(target=z[:5], from_run=given)
    x, y = np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) % 2
    other = adapt((x, y), out=tmp_path / "other", method="source-only", steps=2, batch_size=8)
    with pytest.raises(RunError, match="--from: "):
        segment(target=z, from_run=other)
    with pytest.raises(RunError, match="--from: "):
        adapt(target=x, from_run=given)


def test_the_doctor_examines_a_given_run_and_its_target(streets, given):
    _, z, _ = streets
    task = find_task("segmentation")
    found = task.examine_given_run(str(given), z, skip_bad=False, progress=None)
    assert [finding.severity for finding in found] == ["info"] * len(found)
    assert found[-1].message.startswith("The run predicts 11 classes")
    errors = task.examine_given_run(str(given / "nowhere"), z[:1], skip_bad=False, progress=None)
    assert [(finding.severity, finding.domain) for finding in errors[:2]] == [("error", "run"), ("error", "both")]
