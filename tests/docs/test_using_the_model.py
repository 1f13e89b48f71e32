"""The documented snippets that use a model without ParetoDA give what the run gives."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from run.export import made

from paretoda.api import export_run
from paretoda.data import open_samples
from paretoda.tasks.classification.predictor import load_predictor

PAGE = (Path(__file__).parents[2] / "docs" / "using-the-model.md").read_text(encoding="utf-8")
ONNX, PROGRAM, PLAIN = re.findall(r"^```py\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def lines(code):
    return [line for line in code.splitlines() if line.strip()]


def done(code, monkeypatch, **names):
    """Run it where paretoda cannot be imported."""
    for name in [name for name in sys.modules if name.split(".")[0] == "paretoda"]:
        monkeypatch.setitem(sys.modules, name, None)
    exec(compile(code, "snippet", "exec"), names)
    return names


@pytest.fixture
def features(tmp_path, monkeypatch):
    """A run on features in RUN, its samples, and what it predicts."""
    torch.manual_seed(0)
    monkeypatch.chdir(tmp_path)
    made.saved(made.features(), tmp_path / "RUN")
    x = torch.randn(9, 7) * 5
    model = load_predictor(tmp_path / "RUN" / "model.safetensors", tmp_path / "RUN" / "model.json")
    return x, model.probabilities(open_samples(x.numpy(), labelled=False))


def test_the_two_files_load_in_plain_torch_in_ten_lines(features, monkeypatch):
    x, wanted = features
    assert len(lines(PLAIN)) <= 10
    found = done(PLAIN, monkeypatch, x=x)["logits"].softmax(1).detach().numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_the_program_of_torch_export_runs(features, monkeypatch):
    x, wanted = features
    export_run(Path("RUN"), "torch", Path("model.pt2"))
    found = done(PROGRAM, monkeypatch, x=x)["probabilities"].numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.slow
def test_the_onnx_file_is_used_in_twelve_lines(tmp_path, monkeypatch, capsys):
    pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    monkeypatch.chdir(tmp_path)
    run = made.saved(made.digits(channels=3), tmp_path / "RUN")
    export_run(run, "onnx", Path("model.onnx"), transforms=True)
    picture = np.random.default_rng(0).integers(0, 256, (30, 41, 3), dtype=np.uint8)
    Image.fromarray(picture).save("photo.jpg", "PNG")  # without loss; Pillow looks at the content
    model = load_predictor(run / "model.safetensors", run / "model.json")
    wanted = model.probabilities(open_samples(picture[None], labelled=False))[0]
    assert len(lines(ONNX)) <= 12
    capsys.readouterr()
    done(ONNX, monkeypatch)
    name, confidence = capsys.readouterr().out.rsplit(maxsplit=1)
    assert name == made.CLASSES[wanted.argmax()]
    assert float(confidence) == pytest.approx(wanted.max(), abs=1e-5)
