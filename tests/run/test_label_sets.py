"""Runs whose target lacks classes of the source, or has classes of its own."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from paretoda import ParetoDAClassifier
from paretoda.api import adapt, export_run
from paretoda.cli.app import app
from paretoda.cli.errors import run_app
from paretoda.errors import DataError, RunError, SettingsError
from paretoda.objectives import ALIGNMENTS, TARGET_LOSSES
from paretoda.run.directory.directory import RunDirectory
from paretoda.tasks import find_task
from paretoda.tasks.classification.label_doubts import doubt_label_sets, estimate_shares
from paretoda.tasks.classification.predictor import load_predictor
from paretoda.tasks.loading import load_ensemble
from paretoda.tasks.settings import make_settings
from paretoda.types import Source, Target

CLASSES = ("ant", "bee", "cat", "dog", "emu")
QUICK = {"steps": 60, "batch_size": 32, "bottleneck": 16, "refresh_every": 6, "dropout": 0.0}


def draw(labels, seed, shift=0.0):
    """Five separate classes in eight dimensions; the target is moved a little."""
    rng = np.random.default_rng(seed)
    centres = 5 * np.eye(8)[:5] + np.array([0.0] * 7 + [2.0])
    return (centres[labels] + 0.7 * rng.normal(size=(len(labels), 8)) + shift * np.eye(8)[6]).astype(np.float32)


def make_domains(known, seen, seed=0):
    """A source of the first classes, a target of others, with labels."""
    rng = np.random.default_rng(seed)
    y, z = rng.choice(known, size=400), rng.choice(seen, size=240)
    return (draw(y, seed), y, CLASSES[: len(known)]), (draw(z, seed + 1, shift=0.3), z, CLASSES)


def main(arguments):
    """Return the exit code of a command."""
    return run_app(app, arguments)


@pytest.fixture(scope="module")
def partial_data():
    return make_domains([0, 1, 2, 3, 4], [0, 1, 2])


@pytest.fixture(scope="module")
def open_data():
    return make_domains([0, 1, 2], [0, 1, 2, 3, 4])


def write(folder, source, target):
    paths = []
    for name, (x, y, classes) in (("source", source), ("target", target)):
        paths.append(folder / f"{name}.npz")
        np.savez(paths[-1], x=x, y=y, classes=np.array(classes))
    return paths


def given(settings):
    """Options of the command line."""
    return [text for name, value in settings.items() for text in (f"--{name.replace('_', '-')}", str(value))]


@pytest.fixture(scope="module")
def opened(open_data, tmp_path_factory):
    """A finished run with an open label set, made on the command line, and its data."""
    folder = tmp_path_factory.mktemp("open")
    source, target = write(folder, *open_data)
    out = folder / "run"
    assert main(["adapt", "--source", str(source), "--target", str(target), "--out", str(out), "--label-sets", "open",
                 *given(QUICK)]) == 0  # fmt: skip
    return out, target


def test_a_run_finds_the_classes_that_the_target_lacks(partial_data, tmp_path, capsys):
    source, target = write(tmp_path, *partial_data)
    out = tmp_path / "run"
    options = ["--source", str(source), "--target", str(target), "--out", str(out), "--label-sets", "partial"]
    assert main(["adapt", *options, *given(QUICK)]) == 0
    weights = json.loads((out / "results.json").read_text())["class_weights"]
    assert min(weights["ant"], weights["bee"], weights["cat"]) > 0.5
    assert max(weights["dog"], weights["emu"]) < 0.2
    page = (out / "report.html").read_text()
    assert "Weights of the classes" in page
    assert page.count('<td class="name">emu</td>') >= 1
    capsys.readouterr()
    assert main(["evaluate", str(out), str(target), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"] > 0.95
    assert "h_score" not in found


def test_a_run_calls_new_classes_unknown(opened, capsys):
    out, target = opened
    assert main(["evaluate", str(out), str(target), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["h_score"] > 0.9
    known, unknown = found["known_accuracy"], found["unknown_accuracy"]
    assert found["h_score"] == pytest.approx(2 * known * unknown / (known + unknown))
    assert found["per_class"]["unknown"] == unknown
    assert main(["evaluate", str(out), str(target)]) == 0
    assert "H-score:" in capsys.readouterr().out
    rows = RunDirectory(out).read_predictions()
    names = [prediction for _, prediction, _ in rows]
    assert set(names) == {"ant", "bee", "cat", "unknown"}
    results = json.loads((out / "results.json").read_text())
    assert results["unknown_share"] == pytest.approx(names.count("unknown") / len(names))
    assert main(["predict", str(out), str(target), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)["predictions"]
    assert [row["prediction"] for row in again] == names
    assert f"{100 * results['unknown_share']:.1f} %" in (out / "report.html").read_text()
    assert main(["report", str(out), "--labelled", str(target)]) == 0


def test_the_exported_file_has_the_novelty_and_its_threshold(opened, tmp_path):
    out, target = opened
    file = tmp_path / "model.pt2"
    export_run(out, "torch", file)
    extra = {"paretoda.json": ""}
    module = torch.export.load(file, extra_files=extra).module()
    facts = json.loads(extra["paretoda.json"])
    x = np.load(target)["x"]
    values = dict(zip(json.loads(facts["outputs"]), module(torch.from_numpy(x)), strict=True))
    unknown = (values["novelty"] > float(facts["novelty_threshold"])).tolist()
    names = [prediction for _, prediction, _ in RunDirectory(out).read_predictions()]
    assert unknown == [name == "unknown" for name in names]


def test_a_closed_run_refuses_labels_that_it_does_not_know(open_data, tmp_path, capsys):
    source, target = write(tmp_path, *open_data)
    out = tmp_path / "run"
    adapt(source, target, out=out, reference=False, select="last", **{**QUICK, "steps": 2})
    assert main(["evaluate", str(out), str(target)]) == 2
    assert "classes that the model does not know: dog, emu" in capsys.readouterr().err


@pytest.mark.parametrize("sets", ["partial", "open"])
def test_a_stopped_run_is_resumed_to_the_same_bytes_with_members(partial_data, open_data, sets, tmp_path):
    data = partial_data if sets == "partial" else open_data
    source, target = write(tmp_path, *data)
    settings = {**QUICK, "steps": 30, "label_sets": sets, "members": 2, "checkpoint_every": 10}
    adapt(source, target, out=tmp_path / "whole", **settings)

    def stop(taken, _report):
        if taken == 20:
            raise KeyError("stopped")

    with pytest.raises(KeyError, match="stopped"):
        adapt(source, target, out=tmp_path / "stopped", after=[stop], **settings)
    adapt(out=tmp_path / "stopped", resume=True)
    for name in ("model.safetensors", "results.json", "predictions.csv"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_runs_with_and_without_a_threshold_have_no_mean(opened, open_data, tmp_path):
    out, _ = opened
    (x, y, classes), (t, *_) = open_data
    adapt((x, y, classes), t, out=tmp_path / "closed", reference=False, select="last", **{**QUICK, "steps": 2})
    with pytest.raises(RunError, match="one setting of --label-sets"):
        load_ensemble([out, tmp_path / "closed"], torch.device("cpu"))
    _, mean = load_ensemble([out, out], torch.device("cpu"))
    _, alone = load_ensemble([out], torch.device("cpu"))
    assert mean.threshold == alone.threshold
    assert mean.predict(t) == alone.predict(t)


def test_abstaining_and_calibration_are_refused_where_unknown_is_an_answer(opened, capsys):
    out, target = opened
    for option in (["--abstain-below", "0.5"], ["--calibrated"]):
        assert main(["predict", str(out), str(target), *option]) == 2
        assert f"leave out {option[0]}" in capsys.readouterr().err


@pytest.mark.parametrize(("value", "reason"), [(2.0, "lies in 0..1"), ("x", "lies in 0..1"), (True, "lies in 0..1")])
def test_a_threshold_that_is_none_is_refused(opened, tmp_path, value, reason):
    out, _ = opened
    description = json.loads((out / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**description, "novelty_threshold": value}))
    with pytest.raises(RunError, match=reason):
        load_predictor(out / "model.safetensors", tmp_path / "model.json")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"label_sets": "half"}, "label_sets: "),
        (
            {"label_sets": "open", "method": "coral"},
            "the method 'coral' does not suit --label-sets open; take s",
        ),
        ({"label_sets": "partial", "target_loss": "tcm"}, "the target loss 'tcm' does not suit --label-sets partial"),
        ({"label_sets": "partial", "target_loss": "novelty"}, "'novelty' does not suit --label-sets partial"),
        ({"target_loss": "novelty"}, "the target loss 'novelty' is for --label-sets open"),
        (
            {"label_sets": "partial", "guide": "im"},
            "the guide 'im' does not suit --label-sets partial; take p",
        ),
        ({"label_sets": "open", "select": "ensemble"}, "the validator 'im' of --select ensemble expects"),
        ({"label_sets": "open", "reference": True}, "do not suit --label-sets open; leave it out"),
        ({"label_sets": "open", "from_run": "run"}, "--from has none; leave one out"),
        ({"label_sets": "open", "scheme": "hypernetwork"}, "the scheme 'hypernetwork' is for --label-sets closed"),
        ({"label_sets": "open", "task": "segmentation"}, "--label-sets: only for --task classification"),
    ],
)
def test_settings_that_do_not_suit_are_refused_in_one_sentence(settings, reason):
    with pytest.raises(SettingsError) as refused:
        make_settings(settings)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_every_refusal_names_parts_that_can_be_taken():
    for method in ALIGNMENTS:
        try:
            make_settings({"label_sets": "partial", "method": method})
        except SettingsError as error:
            for other in str(error).split("; take ")[1].split(", "):
                make_settings({"label_sets": "partial", "method": other})
    assert make_settings({"label_sets": "open"}).for_data("images").target_loss == "mcc+propagation+novelty"
    assert make_settings({"label_sets": "partial"}).for_data("features").target_loss == "mcc+propagation"
    assert make_settings({}).for_data("features").target_loss == "mcc+propagation"
    assert "novelty" in TARGET_LOSSES


def test_a_class_called_unknown_is_refused(open_data):
    (x, y, _), (t, *_) = open_data
    with pytest.raises(DataError, match="has a class 'unknown'"):
        adapt((x, y, ("ant", "bee", "unknown")), t, label_sets="open", **QUICK)


def test_without_a_target_there_are_no_label_sets(open_data):
    source, _ = open_data
    run = adapt(source, None, method="source-only", **{**QUICK, "steps": 2})
    assert run.settings.label_sets == "closed"
    with pytest.raises(SettingsError, match="--label-sets open is about a target"):
        adapt(source, None, method="source-only", label_sets="open", **{**QUICK, "steps": 2})


def test_labelled_target_samples_may_be_given(open_data):
    source, (t, z, _) = open_data
    few = [np.flatnonzero(z == label)[0] for label in range(3)]
    labelled = (t[few], z[few], source[2])
    run = adapt(source, t, target_labels=labelled, label_sets="open", **QUICK)
    assert "labels" in run.history[0]["losses"]
    right = np.array(run.predict(t)) == np.array([*source[2], "unknown", "unknown"])[z]
    assert right.mean() > 0.9


def test_each_of_several_sources_keeps_the_weights_of_its_samples(partial_data):
    index = torch.arange(6)
    both = Source(*(torch.randn(6, 3) for _ in "fl"), index, labels=index % 3, domain=index % 2, weights=index / 10)
    assert both.of(1).weights.tolist() == both.weights[1::2].tolist()
    assert replace(both, weights=None).of(1).weights is None
    (x, y, *names), target, *_ = partial_data
    sources = [(x[start::2], y[start::2], *names) for start in (0, 1)]
    run = adapt(sources, target, **{**QUICK, "label_sets": "partial", "steps": 12})
    assert {"source-1", "alignment-1", "source-2", "alignment-2"} <= set(run.history[-1]["losses"])


def test_the_estimators_know_unknown_samples(open_data, partial_data):
    (x, y, _), (t, z, _) = open_data
    settings = QUICK
    model = ParetoDAClassifier(label_sets="open", **settings).fit(x, y, t)
    found = model.predict(t)
    assert model.unknown_label_ == -1
    assert set(found) == {-1, 0, 1, 2}
    assert model.score(t, z) == np.mean(found == np.where(z < 3, z, -1)) > 0.9
    named = ParetoDAClassifier(label_sets="open", **settings).fit(x, np.array(CLASSES)[y], t)
    assert set(named.predict(t)) == {"ant", "bee", "cat", "unknown"}
    assert named.score(t, np.array(CLASSES)[z]) == model.score(t, z)
    lower = ParetoDAClassifier(label_sets="open", **{**settings, "steps": 2}).fit(x, y - 1, t)
    assert lower.unknown_label_ == -2
    (x, y, _), (t, z, _) = partial_data
    model = ParetoDAClassifier(label_sets="partial", **settings).fit(x, y, t)
    assert model.score(t, z) > 0.95


def test_estimated_shares_are_those_of_a_moved_mixture():
    generator = torch.Generator().manual_seed(0)
    shares = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    moved = torch.tensor([0.1, 0.9, 0.0], dtype=torch.float64)
    labels = torch.multinomial(moved, 4000, replacement=True, generator=generator)
    means = torch.tensor([-2.0, 0.0, 2.0], dtype=torch.float64)
    x = means[labels] + torch.randn(4000, generator=generator, dtype=torch.float64)
    probabilities = (-((x.unsqueeze(1) - means) ** 2) / 2 + shares.log()).softmax(1)  # Bayes' rule in the source
    assert torch.allclose(estimate_shares(probabilities, shares), moved, atol=0.03)


def doubts(source, target):
    found = find_task("classification").examine(source, target[0], table=None, skip_bad=False, progress=None)
    return [finding.message for finding in found if "--label-sets" in finding.message]


def test_the_doctor_doubts_label_sets_that_differ_and_no_others(partial_data, open_data):
    (missing,) = doubts(*partial_data)
    assert "lack classes of the source: dog, emu; if it does, take --label-sets partial" in missing
    (strange,) = doubts(*open_data)
    assert "take --label-sets open" in strange
    assert doubts(*make_domains([0, 1, 2], [0, 1, 2])) == []
    assert doubts(*make_domains([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])) == []


def test_a_closed_run_ends_with_the_doubts_of_its_reference(partial_data):
    source, (t, *_) = partial_data
    run = adapt(source, t, **{**QUICK, "steps": 100, "scaling": "joint"})
    assert any("--label-sets partial" in sentence for sentence in run.sentences)
    told = adapt(source, t, label_sets="partial", **{**QUICK, "steps": 20})
    assert not any("take --label-sets" in sentence for sentence in told.sentences)


def test_nothing_is_doubted_where_the_model_is_at_a_loss():
    sure, unsure = 9 * torch.eye(3)[torch.arange(30) % 3], torch.zeros(60, 3)
    unsure[:, 0] = 1.0
    index = torch.arange(30)
    source = Source(sure, sure, index, labels=index % 3)
    target = Target(unsure, unsure, torch.arange(60))
    snapshot = SimpleNamespace(source=source, held_out_source=source, target=target, held_out_target=target)
    assert doubt_label_sets(snapshot, ("a", "b", "c")) == []
