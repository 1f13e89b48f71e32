"""The line of a run has all candidates, with the scores of all validators and the truth, and these change nothing."""

import pytest
from bench.made import QUICK, SUM, specs

from paretoda.bench.contenders import Contender
from paretoda.bench.execute import execute_run
from paretoda.evaluation.joint_validators import JOINT_VALIDATORS
from paretoda.evaluation.validators import VALIDATORS, WITH_SOURCE

SELECTED = Contender("selected", {**QUICK, "method": "dann", "scheme": "linear", "select": "im", "evaluate_every": 2})


@pytest.fixture(scope="module")
def line(features, tmp_path_factory):
    return execute_run(specs(SELECTED)[0], features, tmp_path_factory.mktemp("bench") / "data")


def test_every_candidate_has_every_score_and_the_oracle_accuracy(line):
    assert [row["step"] for row in line["candidates"]] == [2, 4, 6]
    for row in line["candidates"]:
        assert set(row) == {"step", "oracle_accuracy", "scores"}
        assert set(row["scores"]) == {*VALIDATORS, *JOINT_VALIDATORS}
    truth = {row["step"]: row["oracle_accuracy"] for row in line["candidates"]}
    assert truth[6] == pytest.approx(line["accuracy"]["last"], abs=1e-12)
    assert truth[line["chosen_step"]] == pytest.approx(line["accuracy"]["chosen"], abs=1e-12)
    own = {row["step"]: row["scores"] for row in line["candidates"]}[line["chosen_step"]]
    assert all(own[name] == value for name, value in line["scores"].items())


def test_the_run_is_the_same_as_without_them(features, tmp_path, line, monkeypatch):
    monkeypatch.setattr("paretoda.bench.execute.CandidateRecorder.__call__", lambda *_: None)
    plain = execute_run(specs(SELECTED)[0], features, tmp_path / "data")
    assert plain["candidates"] == []
    for name in ("accuracy", "chosen_step", "scores", "weights", "per_class"):
        assert plain[name] == line[name]


def test_a_row_may_begin_with_a_model_of_the_source_alone(features, tmp_path):
    quick = {"steps": 6, "batch_size": 16, "select": "im", "evaluate_every": 2}
    row = Contender("source-free", {**quick, "from_run": "source-only"})
    found = execute_run(specs(row)[0], features, tmp_path / "data")
    assert [row["step"] for row in found["candidates"]] == [0, 2, 4, 6]  # the given model is the first
    assert set(found["candidates"][0]["scores"]) == {*VALIDATORS, *JOINT_VALIDATORS} - set(WITH_SOURCE)
    alone = execute_run(specs(Contender("alone", {"method": "source-only"}))[0], features, tmp_path / "data")
    assert found["candidates"][0]["oracle_accuracy"] == pytest.approx(alone["accuracy"]["last"], abs=0.05)


def test_a_run_without_selection_has_no_candidates(features, tmp_path):
    assert execute_run(specs(SUM)[0], features, tmp_path / "data")["candidates"] == []
