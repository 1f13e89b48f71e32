"""Runs of regression recover a function, keep its units, resume to the same bytes, and refuse what needs classes."""

import json

import numpy as np
import pytest
import torch
from cli.processes import Inside, rows_of, weights

from paretoda import adapt
from paretoda.bench.loading import needs_files
from paretoda.bench.suites import SUITES
from paretoda.errors import RunError, SettingsError
from paretoda.evaluation.value_errors import measure_values
from paretoda.models.backbones import make_backbone
from paretoda.run.interrupt import InterruptedRunError
from paretoda.tasks.loading import load_run
from paretoda.tasks.settings import make_settings

QUICK = {"task": "regression", "steps": 6, "evaluate_every": 3, "bottleneck": 8, "device": "cpu"}


def shifted(seed=0):
    """A linear function of five features, whose means differ between the domains, far from 0 and wide."""
    rng = np.random.default_rng(seed)
    slope = rng.normal(size=5)
    x, z = rng.normal(size=(200, 5)), rng.normal(size=(120, 5)) + 0.7
    return (x, 500 + 40 * x @ slope + rng.normal(size=200)), z, 500 + 40 * z @ slope


@pytest.fixture
def files(tmp_path):
    source, target, truth = shifted()
    np.savez(tmp_path / "s.npz", x=source[0], y=source[1])
    np.savez(tmp_path / "t.npz", x=target, y=truth)
    return tmp_path


@pytest.fixture
def paretoda(capsys):
    return Inside(capsys)


@pytest.mark.parametrize("given", [{}, {"method": "source-only"}, {"source_loss": "huber"}], ids=str)
def test_a_shifted_linear_function_is_recovered_in_its_units(given):
    source, target, truth = shifted()
    run = adapt(source, target, task="regression", steps=300, device="cpu", **given)
    found = measure_values(np.array(run.predict(target)), truth)
    assert found["r2"] > 0.8
    assert found["mae"] < 0.5 * np.abs(source[1].mean() - truth).mean()


def test_the_units_of_the_values_change_nothing_but_the_units():
    source, target, _ = shifted()
    one, other = (adapt((source[0], y), target, **QUICK) for y in (source[1], 1000 * source[1] - 7))
    np.testing.assert_allclose(1000 * np.array(one.predict(target)) - 7, other.predict(target), rtol=1e-3)


def test_the_values_of_the_target_change_nothing():
    source, target, truth = shifted()
    one, other = (adapt(source, given, **QUICK) for given in (target, (target, truth)))
    assert one.predict(target) == other.predict(target)


@pytest.mark.parametrize("scheme", ["linear", "paretoda"])
def test_a_stopped_run_resumes_to_the_same_bytes(files, scheme):
    given = {**QUICK, "method": "dann", "scheme": scheme, "checkpoint_every": 2}
    places = files / "s.npz", files / "t.npz"
    adapt(*places, files / "whole", **given)

    def stop(taken, _report):
        if taken == 4:
            raise InterruptedRunError("stop")

    with pytest.raises(InterruptedRunError):
        adapt(*places, files / "run", after=[stop], **given)
    adapt(None, None, files / "run", resume=True)
    assert weights(files / "run") == weights(files / "whole")
    assert (files / "run" / "predictions.csv").read_text() == (files / "whole" / "predictions.csv").read_text()


def test_the_commands_work_on_files(files, paretoda):
    s, t, run = files / "s.npz", files / "t.npz", files / "run"
    assert paretoda("doctor", "--task", "regression", "--source", s, "--target", t).code == 0
    small = ("--steps", 60, "--bottleneck", 8, "--device", "cpu", "--json")
    end = paretoda("adapt", "--task", "regression", "--source", s, "--target", t, "--out", run, *small)
    assert end.code == 0, end.err
    assert set(end.last_line["scores"]) == {"dev", "source-risk"}
    assert list(rows_of(run / "predictions.csv")[0]) == ["name", "value"]
    assert paretoda("predict", run, t, "--out", files / "p.csv").code == 0
    predicted = np.array([float(row["value"]) for row in rows_of(files / "p.csv")])
    truth = np.load(t)["y"]
    found = paretoda("evaluate", run, t, "--json").last_line
    assert found["mae"] == pytest.approx(np.abs(predicted - truth).mean(), rel=1e-6)
    assert found["r2"] == pytest.approx(measure_values(predicted, truth)["r2"], rel=1e-6)
    mean = paretoda("evaluate", run, t, "--with", run, "--json").last_line
    assert mean["runs"] == 2
    assert mean["rmse"] == pytest.approx(found["rmse"], rel=1e-6)
    page = files / "page.html"
    assert paretoda("report", run, "--labelled", t, "--out", page).code == 0
    text = page.read_text()
    assert "Distribution of values" in text
    assert "target (oracle)" in text
    assert "confidence" not in text.lower()
    assert json.loads((run / "model.json").read_text())["task"] == "regression"
    for option in ("--refined", "--calibrated"):
        assert "values have no classes" in paretoda("predict", run, t, option).sentence
    listed = paretoda("list", "methods", "--task", "regression", "--json").last_line
    assert list(listed["methods"]) == ["source-only", "dann", "dan", "ddc", "coral", "afn", "rsd"]
    validators = paretoda("list", "validators", "--task", "regression", "--json").last_line["validators"]
    assert set(validators) == {"dev", "source-risk"}


def test_predictions_far_beyond_the_values_of_the_source_are_reported():
    source, target, _ = shifted()
    wild = target.copy()
    wild[:2] *= 300
    run = adapt(source, wild, **{**QUICK, "steps": 60}, select="last")
    assert any("far beyond the source's values" in sentence for sentence in run.sentences)
    run = adapt(source, target, **{**QUICK, "steps": 60}, select="last")
    assert not any("far beyond" in sentence for sentence in run.sentences)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "cdan"}, "'cdan' is for --task classification, not for regression, which has source-only, dann"),
        ({"target_loss": "mcc"}, "which has none, bsp"),
        ({"select": "im"}, "which has last, dev, source-risk"),
        ({"select": "ensemble"}, "which has last, dev, source-risk"),
        ({"guide": "agreement"}, "which has neighbours"),
        ({"guide": "labels"}, "which has neighbours"),
        ({"scheme": "metaalign"}, "for --task classification"),
        ({"class_balanced": True}, "--class-balanced: only for --task classification$"),
        ({"members": 2}, "--members: only for --task classification$"),
        ({"teacher_decay": 0.9}, "--teacher-decay: only for --task classification or segmentation$"),
        ({"levels": 2}, "--levels: only for --task segmentation$"),
        ({"from_run": "RUN"}, "--from is not for regression"),
        ({"label_loss": True}, "--target-labels is not for regression"),
        ({"reference": True}, "leave out --reference"),
    ],
    ids=str,
)
def test_what_needs_classes_is_refused_in_one_sentence(given, message):
    with pytest.raises(SettingsError, match=message):
        make_settings({"task": "regression", **given})


def test_settings_of_regression_are_refused_elsewhere():
    with pytest.raises(SettingsError, match="--source-loss: only for --task regression"):
        make_settings({"source_loss": "huber"})


def test_target_labels_are_refused():
    source, target, _ = shifted()
    with pytest.raises(SettingsError, match="--target-labels is not for regression"):
        adapt(source, target, target_labels=source, **QUICK)


def test_values_have_no_probabilities():
    source, target, _ = shifted()
    run = adapt(source, target, **QUICK)
    with pytest.raises(RunError, match="use predict"):
        run.predict_proba(target)


def test_a_source_alone_is_trained_without_a_target():
    source, target, _ = shifted()
    run = adapt(source, None, **QUICK, method="source-only")
    assert len(run.predict(target)) == 120


@pytest.mark.parametrize("frozen", [False, True])
def test_images_in_a_list_are_read_by_a_backbone(tmp_path, frozen):
    from PIL import Image

    rng = np.random.default_rng(0)
    for place in range(40):
        Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)).save(tmp_path / f"{place}.png")
    (tmp_path / "s.txt").write_text("".join(f"{place}.png {place / 7}\n" for place in range(40)))
    (tmp_path / "t.txt").write_text("".join(f"{place}.png\n" for place in range(40)))
    torch.save(make_backbone("cnn", (3, 12, 12)).state_dict(), tmp_path / "cnn.pth")
    given = {"backbone": "cnn", "backbone_weights": str(tmp_path / "cnn.pth"), "frozen": frozen}
    run = adapt(tmp_path / "s.txt", tmp_path / "t.txt", tmp_path / "run", **QUICK, **given)
    assert len(run.predict(tmp_path / "t.txt")) == 40


def test_the_suites_need_no_files_and_their_settings_are_those_of_the_task():
    suites = {name: suite for name, suite in SUITES.items() if suite.task == "regression"}
    assert set(suites) == {"turned-digits", "diabetes"}
    for suite in suites.values():
        assert suite.measure == "r2"
        for task in suite.tasks.values():
            assert not needs_files(task)
            make_settings({"task": "regression", **task.settings})


def test_a_bench_shows_r2_below_0(tmp_path, paretoda):
    given = ("--tasks", "slim-heavy", "--methods", "source-only", "--schemes", "linear", "--seeds", 1, "--jobs", 1)
    end = paretoda("bench", "diabetes", *given, "--steps", 5, "--bottleneck", 8, "--out", tmp_path / "bench")
    assert end.code == 0, end.err
    line = json.loads((tmp_path / "bench" / "runs.jsonl").read_text())
    assert set(line["r2"]) == set(line["mae"]) == {"chosen", "last"}
    assert f"{100 * line['r2']['chosen']:.1f}" in (tmp_path / "bench" / "chosen.md").read_text()
    assert line["r2"]["chosen"] < 0
    assert set(line["candidates"][0]["scores"]) == {"dev", "source-risk"}


@pytest.mark.parametrize("value", [None, {}, {"mean": "x", "deviation": 1}, {"mean": 0, "deviation": 0}], ids=str)
def test_a_model_without_its_units_is_refused(tmp_path, value):
    source, target, _ = shifted()
    adapt(source, target, tmp_path / "run", **{**QUICK, "steps": 1})
    description = tmp_path / "run" / "model.json"
    facts = json.loads(description.read_text())
    description.write_text(json.dumps({**facts, "value": value}))
    with pytest.raises(RunError, match="damaged"):
        load_run(tmp_path / "run", torch.device("cpu"))
