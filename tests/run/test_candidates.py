"""Candidates: what a rule needs is computed and no more, and a resumed run makes the same choice."""

import pytest
import torch

from paretoda.api import adapt
from paretoda.errors import SettingsError
from paretoda.evaluation.joint_validators import ensv
from paretoda.evaluation.validators import VALIDATORS
from paretoda.run.callbacks import Callbacks
from paretoda.run.candidates import Candidates
from paretoda.tasks.settings import make_settings
from paretoda.training.checkpoint import CheckpointError


def test_all_candidates_vote_and_the_choice_is_theirs(files, small):
    predictions = []

    def watch(_taken, snapshot, _pair, known):
        predictions.append(snapshot.target.logits.softmax(1))
        assert set(known) == {"im"}

    run = adapt(
        files / "source.npz",
        files / "target.npz",
        callbacks=Callbacks(candidate=watch),
        **{**small, "select": "ensv+im", "evaluate_every": 8},
    )
    scores = ensv(predictions)
    assert [row["ensv"] for row in run.candidates] == scores
    assert len(set(scores)) > 1
    assert all(set(row) == {"step", "im", "ensv"} for row in run.candidates)
    assert set(run.scores) == {*VALIDATORS, "ensv"}
    assert run.scores["ensv"] == scores[[row["step"] for row in run.candidates].index(run.chosen)]
    assert any("mean rank of ensv and im" in sentence for sentence in run.sentences)


@pytest.mark.parametrize("rule", ["ensv", "ensv+im"])
def test_a_run_that_was_cut_off_chooses_the_same_bytes(files, small, rule):
    class Killed(BaseException):
        pass

    def kill(taken, _report):
        if taken == 35:
            raise Killed

    settings = {**small, "select": rule, "evaluate_every": 8}
    with pytest.raises(Killed):
        adapt(files / "source.npz", files / "target.npz", files / "cut", after=[kill], **settings)
    resumed = adapt(out=files / "cut", resume=True)
    whole = adapt(files / "source.npz", files / "target.npz", files / "whole", **settings)
    assert resumed.candidates == whole.candidates
    for name in ("model.safetensors", "results.json"):
        assert (files / "cut" / name).read_bytes() == (files / "whole" / name).read_bytes()


def test_predictions_are_kept_only_where_a_rule_needs_them():
    assert set(Candidates("ensemble", None).to_plain()) == {"taken", "scores"}
    kept = Candidates("ensv+im", None, taken=[5], scores=[{"im": 0.5}], predictions=[torch.eye(3)])
    again = Candidates("ensv+im", None)
    again.restore(kept.to_plain())
    assert again.rows() == kept.rows() == [{"im": 0.5, "ensv": 1.0}]


@pytest.mark.parametrize(
    "predictions", [None, [], [torch.eye(3)], [torch.eye(3), 7], [torch.eye(3), torch.eye(2)], [torch.ones(3)] * 2]
)
def test_predictions_that_are_damaged_are_refused(predictions):
    plain = {"taken": [5, 10], "scores": [{}, {}]} | ({} if predictions is None else {"predictions": predictions})
    with pytest.raises(CheckpointError, match="use --overwrite"):
        Candidates("ensv", None).restore(plain)


def test_a_rule_names_validators_once():
    assert make_settings({"select": "ensv+class-ami+mano"}).select == "ensv+class-ami+mano"
    for rule, message in [
        ("ensv+entropi", "there is no rule of selection 'entropi'; did you mean 'entropy'"),
        ("im+im", "name each validator once"),
        ("ensemble+ensv", "'ensemble' or 'last' alone"),
        ("last+im", "'ensemble' or 'last' alone"),
    ]:
        with pytest.raises(SettingsError, match=message):
            make_settings({"select": rule})
    with pytest.raises(SettingsError, match="is for --task classification"):
        make_settings({"task": "segmentation", "select": "class-ami"})
    assert make_settings({"task": "segmentation", "select": "ensv+mano"}).select == "ensv+mano"


def test_the_rule_last_takes_no_snapshot(files, small):
    heard = []
    callbacks = Callbacks(candidate=lambda *facts: heard.append(facts))
    adapt(files / "source.npz", files / "target.npz", callbacks=callbacks, **{**small, "select": "last"})
    assert not heard
