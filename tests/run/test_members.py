"""A run with several members as users meet it: files, predictions, refined ones, resuming, the exported model."""

import json

import numpy as np
import pytest
import torch
from run.conftest import blobs

from paretoda import adapt
from paretoda.api import export_run
from paretoda.data import open_samples
from paretoda.run.interrupt import InterruptedRunError
from paretoda.tasks.loading import load_run

torch.set_num_threads(1)
CPU = torch.device("cpu")
SMALL = {"steps": 12, "batch_size": 16, "bottleneck": 8, "evaluate_every": 6, "checkpoint_every": 4, "components": 6}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of three members, and three runs with their seeds and the same split; with TCM they share nothing else."""
    x, y, t, _ = blobs()
    given = {"target_loss": "tcm", "select": "last", **SMALL}
    place = tmp_path_factory.mktemp("members") / "run"
    together = adapt((x, y), t, place, members=3, **given)
    alone = [adapt((x, y), t, seed=seed, split_seed=0, reference=False, **given) for seed in range(3)]
    return place, together, alone, t


@pytest.mark.parametrize("refined", [False, True])
def test_the_mean_of_the_members_is_predicted_and_stored(trained, refined):
    place, together, alone, t = trained
    wanted = np.mean([run.predict_proba(t, refined=refined) for run in alone], axis=0)
    assert together.predict_proba(t, refined=refined) == pytest.approx(wanted, abs=1e-5)
    loaded = load_run(place, CPU)[1]
    assert np.array_equal(
        loaded.probabilities(open_samples(t, labelled=False), refined=refined),
        together.predict_proba(t, refined=refined),
    )


def test_the_report_and_the_results_are_those_of_one_run(trained):
    place, together, alone, _ = trained
    said = "3 networks predict together"
    assert said in together.sentences[0]
    assert said in (place / "report.html").read_text()
    assert not any("predict together" in sentence for run in alone for sentence in run.sentences)
    results = json.loads((place / "results.json").read_text())
    assert set(results["scores"]) == set(together.scores)
    losses = [run.history[0]["losses"]["source"] for run in alone]
    assert together.history[0]["losses"]["source"] == pytest.approx(np.mean(losses))


def test_a_stopped_run_goes_on_to_the_same_model(trained, tmp_path):
    t = trained[3]
    x, y, _, _ = blobs()

    def stop(taken, _report):
        if taken == 7:
            raise KeyboardInterrupt

    np.savez(tmp_path / "source.npz", x=x, y=y)
    np.savez(tmp_path / "target.npz", x=t)
    given = tmp_path / "source.npz", tmp_path / "target.npz"
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    settings = {**SMALL, "members": 2, "refresh_every": 3}
    adapt(*given, whole, **settings)
    with pytest.raises((KeyboardInterrupt, InterruptedRunError)):
        adapt(*given, parts, after=[stop], **settings)
    adapt(*given, parts, resume=True)
    assert (whole / "model.safetensors").read_bytes() == (parts / "model.safetensors").read_bytes()
    assert (whole / "results.json").read_bytes() == (parts / "results.json").read_bytes()


def test_the_exported_model_is_the_mean(trained, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    place, together, _, t = trained
    export_run(place, "onnx", tmp_path / "model.onnx", refined=True)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, {session.get_inputs()[0].name: t}), strict=True))
    assert found["probabilities"] == pytest.approx(together.predict_proba(t), abs=1e-5)
    assert found["refined"] == pytest.approx(together.predict_proba(t, refined=True), abs=1e-5)
