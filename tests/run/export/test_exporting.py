"""Exported files compute what the run computes, for every kind of run; a file that does not is never written."""

import json
import sys

import numpy as np
import pytest
import torch
from run.export import made

from paretoda.api import export_run
from paretoda.data import open_samples
from paretoda.errors import RunError
from paretoda.run.export import formats as writing
from paretoda.tasks.classification.predictor import load_predictor
from paretoda.tasks.segmentation.predictor import load_predictor as load_segmenter

ort = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


@pytest.fixture(autouse=True)
def _same_networks():
    torch.manual_seed(0)


def session(path):
    return ort.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])


def answers(path, inputs):
    """Outputs by name of an ONNX file or a program of torch."""
    if path.suffix == ".onnx":
        opened = session(path)
        names = [output.name for output in opened.get_outputs()]
        return dict(zip(names, opened.run(None, {opened.get_inputs()[0].name: inputs}), strict=True))
    extra = {"paretoda.json": ""}
    module = torch.export.load(path, extra_files=extra).module()
    names = json.loads(json.loads(extra["paretoda.json"])["outputs"])
    return dict(zip(names, [found.numpy() for found in module(torch.from_numpy(inputs))], strict=True))


def test_a_model_of_features_is_one_onnx_file_that_scales_and_refines(tmp_path):
    run = made.saved(made.features(), tmp_path / "run")
    exported = export_run(run, "onnx", refined=True)
    assert exported.path == run / "model.onnx"
    assert exported.difference <= 1e-5
    x = np.random.default_rng(1).normal(size=(11, 7)).astype(np.float32) * 5
    found = answers(exported.path, x)
    model, samples = load_predictor(run / "model.safetensors", run / "model.json"), open_samples(x, labelled=False)
    np.testing.assert_allclose(found["probabilities"], model.probabilities(samples), atol=1e-5)
    np.testing.assert_allclose(found["refined"], model.probabilities(samples, refined=True), atol=1e-5)
    heated = torch.from_numpy(found["logits"] / 1.5).softmax(1).numpy()
    np.testing.assert_allclose(heated, model.probabilities(samples, calibrated=True), atol=1e-5)
    facts = session(exported.path).get_modelmeta().custom_metadata_map
    assert json.loads(facts["classes"]) == list(made.CLASSES)
    assert json.loads(facts["input"])["shape"] == ["n", 7]
    assert json.loads(facts["temperature"]) == 1.5
    assert b"site-packages" not in exported.path.read_bytes()
    assert str(tmp_path).encode() not in exported.path.read_bytes()


def test_a_file_that_computes_something_else_is_not_written(tmp_path, monkeypatch):
    run = made.saved(made.features(), tmp_path / "run")
    whole = writing._torch

    def spoiled(traced, facts):
        data, answer = whole(traced, facts)
        return data, lambda inputs: [found + 2e-5 * (len(inputs) == 5) for found in answer(inputs)]

    exported = export_run(run, "torch")
    assert exported.path == run / "model.pt2"
    exported.path.unlink()
    monkeypatch.setattr(writing, "_torch", spoiled)
    with pytest.raises(RunError, match="nothing was written"):
        export_run(run, "torch")
    assert sorted(path.name for path in run.iterdir()) == ["model.json", "model.safetensors"]


@pytest.mark.parametrize("package", ["onnxruntime", "onnxscript"])
def test_without_the_extra_it_is_named(tmp_path, monkeypatch, package):
    run = made.saved(made.features(), tmp_path / "run")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RunError, match=r"paretoda\[onnx\]"):
        export_run(run, "onnx")
    assert not (run / "model.onnx").exists()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"transforms": True}, "leave out --transforms"),
        ({"preference": [1.0, 1.0]}, "--scheme hypernetwork"),
        ({"out": "."}, "is a directory"),
    ],
)
def test_what_a_model_of_features_has_not_is_refused(tmp_path, how, said):
    run = made.saved(made.features(), tmp_path / "run")
    out = {"out": tmp_path} if "out" in how else {}
    with pytest.raises(RunError, match=said):
        export_run(run, "onnx", **{**how, **out})


def test_refined_predictions_need_tcm_and_scenes_have_no_preference(tmp_path):
    with pytest.raises(RunError, match="'tcm'"):
        export_run(made.saved(made.frozen(), tmp_path / "a"), "torch", refined=True)
    with pytest.raises(RunError, match="leave out --preference"):
        export_run(made.saved(made.scenes(), tmp_path / "b"), "torch", preference=[1.0])


@pytest.mark.slow
def test_another_point_of_the_front_is_another_file(tmp_path):
    run = made.saved(made.hypernetwork(), tmp_path / "run")
    x = np.random.default_rng(1).normal(size=(6, 7)).astype(np.float32)
    found = {}
    for name, preference in (("own", None), ("corner", [1.0, 0.0])):
        exported = export_run(run, "onnx", tmp_path / f"{name}.onnx", preference=preference)
        found[name] = answers(exported.path, x)["probabilities"]
        model = load_predictor(run / "model.safetensors", run / "model.json")
        model = model if preference is None else model.with_preference(preference)
        wanted = model.probabilities(open_samples(x, labelled=False))
        np.testing.assert_allclose(found[name], wanted, atol=1e-5)
    assert np.abs(found["own"] - found["corner"]).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [made.digits, lambda: made.digits(channels=3), made.frozen], ids=["grey", "rgb", "net"]
)
def test_with_its_transforms_a_file_takes_pictures_of_any_size(tmp_path, make):
    run = made.saved(make(), tmp_path / "run")
    exported = export_run(run, "onnx", transforms=True)
    model = load_predictor(run / "model.safetensors", run / "model.json")
    for shape in ((3, 20, 41, 3), (1, 97, 33, 3), (2, 32, 32, 3)):
        pictures = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
        found = answers(exported.path, pictures)["probabilities"]
        np.testing.assert_allclose(found, model.probabilities(open_samples(pictures, labelled=False)), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (made.digits, ("n", 1, 28, 28)),
        (lambda: made.digits("lenet"), ("n", 1, 28, 28)),
        (made.frozen, ("n", 3, 32, 32)),
        (made.photos, ("n", 3, "height", "width")),
        (made.scenes, ("n", 3, "height", "width")),
        (lambda: made.scenes("efficientnet-lite0"), ("n", 3, 24, 40)),
    ],
    ids=["cnn", "lenet", "efficientnet", "resnet", "dilated", "hypercolumns"],
)
def test_without_transforms_the_size_is_free_where_the_network_allows(tmp_path, make, shape):
    run = made.saved(make(), tmp_path / "run")
    exported = export_run(run, "onnx")
    assert exported.input_shape == shape
    assert [isinstance(side, str) for side in session(exported.path).get_inputs()[0].shape[1:]] == [
        isinstance(side, str) for side in shape[1:]
    ]
    own = [45 if isinstance(side, str) else side for side in shape[1:]]
    found = answers(exported.path, np.zeros((4, *own), np.float32))
    assert found["logits"].shape == ((4, 3, *own[1:]) if "labels" in found else (4, 3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "backbone"), [("onnx", "dilated"), ("torch", "dilated"), ("onnx", "efficientnet-lite0")]
)
def test_a_segmenter_gives_the_maps_that_predict_gives(tmp_path, kind, backbone):
    run = made.saved(made.scenes(backbone), tmp_path / "run")
    exported = export_run(run, kind, transforms=True, refined=True)
    model = load_segmenter(run / "model.safetensors", run / "model.json")
    for shape in ((1, 50, 33, 3), (2, 24, 40, 3)):
        pictures = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
        found = answers(exported.path, pictures)
        assert found["labels"].shape == shape[:3]
        for place, picture in enumerate(pictures):
            wanted = model.probabilities(picture).numpy()
            np.testing.assert_allclose(found["probabilities"][place], wanted, atol=1e-5)
            assert (found["labels"][place] == wanted.argmax(0)).mean() > 0.999
            refined = model.probabilities(picture, refined=True).numpy()
            np.testing.assert_allclose(found["refined"][place], refined, atol=1e-5)
