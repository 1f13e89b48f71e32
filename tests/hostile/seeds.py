"""Whole files, made by the product itself where it makes such files, small enough to be damaged thousands of times."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save as save_tensors
from torch import nn

from paretoda import adapt
from paretoda.data.segmentation import SceneTransform
from paretoda.data.transforms import ImageTransform
from paretoda.models.classifier import make_model
from paretoda.models.segmentation.segmenter import Segmenter, SegmenterArchitecture
from paretoda.objectives.target.tcm import Tcm
from paretoda.tasks.classification.predictor import ClassificationPredictor
from paretoda.tasks.segmentation.predictor import SegmentationPredictor

CLASSES = ("cat", "dög", "<b>")
QUICK: dict[str, Any] = {
    "method": "dann+tcm",
    "steps": 4,
    "evaluate_every": 2,
    "bottleneck": 4,
    "batch_size": 8,
    "options": ("alignment.hidden=4", "target.width=4"),
    "reference": False,
    "device": "cpu",
}
RNG = np.random.default_rng(0)


def features(count: int) -> dict[str, Any]:
    y = np.arange(count) % 3
    x = RNG.normal(size=(count, 5)) + 2 * np.eye(3, 5)[y]
    return {"x": x.astype(np.float32), "y": y, "classes": np.array(CLASSES)}


def scenes(count: int) -> dict[str, Any]:
    x = RNG.integers(0, 255, (count, 8, 12, 3), dtype=np.uint8)
    return {"x": x, "y": (x[..., 0] // 86).astype(np.uint8), "classes": np.array(CLASSES)}


def npz(arrays: dict[str, Any], *, packed: bool) -> bytes:
    out = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(out, **arrays)
    return out.getvalue()


def images() -> dict[str, bytes]:
    """One of each format and mode that is read."""
    rgb = Image.fromarray(RNG.integers(0, 255, (9, 7, 3), dtype=np.uint8))
    kinds = [("rgb.png", rgb), ("l.png", rgb.convert("L")), ("p.gif", rgb.convert("P")), ("a.png", rgb.convert("RGBA"))]
    kinds += [(f"x.{end}", rgb) for end in ("jpg", "bmp", "tiff", "webp", "ppm", "tga")]
    kinds += [("i.png", Image.fromarray(RNG.integers(0, 65535, (9, 7), dtype=np.uint16)))]
    found = {}
    for name, image in kinds:
        out = io.BytesIO()
        image.save(out, {"jpg": "JPEG", "tga": "TGA", "ppm": "PPM"}.get(name.rsplit(".", 1)[1], name.rsplit(".", 1)[1]))
        found[name] = out.getvalue()
    return found


def labels() -> dict[str, bytes]:
    """Label maps: 8 bits, a palette, one bit, 16 bits, and SYNTHIA's 16 bits in three channels."""
    ids = Image.fromarray(RNG.integers(0, 3, (9, 7), dtype=np.uint8))
    found = {}
    for name, image in {"l": ids, "p": ids.convert("P"), "1": ids.convert("1"), "i": ids.convert("I;16")}.items():
        out = io.BytesIO()
        image.save(out, "PNG")
        found[name] = out.getvalue()
    return {**found, "synthia": _deep_png(RNG.integers(0, 23, (4, 5, 3), dtype=np.uint16))}


def _deep_png(values: Any) -> bytes:
    import zlib

    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    head = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 16, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    body = b"".join(struct.pack(">I", len(b)) + k + b + struct.pack(">I", zlib.crc32(k + b)) for k, b in parts)
    return b"\x89PNG\r\n\x1a\n" + body


def run(folder: Path) -> Path:
    """A finished run with everything that a run leaves, its candidates included."""
    source, target = folder / "source.npz", folder / "target.npz"
    source.write_bytes(npz(features(30), packed=False))
    target.write_bytes(npz({"x": features(24)["x"]}, packed=False))
    adapt(str(source), str(target), folder / "run", **QUICK)
    return folder / "run"


def image_model(folder: Path) -> Path:
    """A predictor of images, with a network that has seen nothing."""
    folder.mkdir()
    model = make_model("cnn", (1, 8, 8), 3, bottleneck=4)
    transform = ImageTransform(8, 1, (0.5,), (0.5,))
    ClassificationPredictor(CLASSES, transform, model).save(folder / "model.safetensors", folder / "model.json")
    return folder


def outside_model(folder: Path) -> Path:
    """A predictor of images with a network of transformers, rebuilt from its configuration."""
    from transformers import ResNetConfig

    folder.mkdir()
    config = ResNetConfig(embedding_size=4, hidden_sizes=[4, 4], depths=[1, 1], layer_type="basic", num_channels=1)
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    model = make_model(f"hf:{folder}", (1, 8, 8), 3, bottleneck=4)
    transform = ImageTransform(8, 1, (0.5,), (0.5,))
    ClassificationPredictor(CLASSES, transform, model).save(folder / "model.safetensors", folder / "model.json")
    return folder


def scene_model(folder: Path) -> Path:
    """A predictor of scenes, with a network that has seen nothing."""
    folder.mkdir()
    model = Segmenter(SegmenterArchitecture("dilated", 3, rates=(1,), channels=4))
    refiner = Tcm(model.width, 3, light=True, width=4)
    colours = ((255, 0, 0), (0, 255, 0), (0, 0, 255))
    made = SegmentationPredictor(CLASSES, colours, SceneTransform((16, 16)), model, refiner)
    made.save(folder / "model.safetensors", folder / "model.json")
    return folder


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))


def weights() -> dict[str, bytes]:
    """The network's state in every form that is read."""
    state, found = network().state_dict(), {}
    for name, new in {"w.pth": True, "old.pth": False}.items():
        out = io.BytesIO()
        torch.save(state, out, _use_new_zipfile_serialization=new)
        found[name] = out.getvalue()
    return {**found, "w.safetensors": save_tensors(dict(state))}


def bench_lines() -> bytes:
    """Lines of a bench, as its store writes them."""
    rows = []
    for task in ("A-B", "B-A"):
        for name, method in (("source-only", "source-only"), ("mine", "dann")):
            for seed in (0, 1):
                settings = {"method": method, "target_loss": "none", "scheme": "linear", "lr": 0.1}
                line = {"key": f"{task}{name}{seed}", "suite": "s", "task": task, "name": name, "seed": seed}
                value = 0.5 + 0.1 * seed + 0.05 * (name == "mine")
                line |= {"settings": settings, "variant": {}, "judge": "", "seconds": 1.5, "chosen_step": 10}
                line |= {"accuracy": {"chosen": value, "last": value}, "scores": {"im": 0.1}, "moves": {"sum": 10}}
                rows.append({**line, "versions": {"torch": "2"}, "selection": "ensemble"})
    rows.append({**rows[0], "task": "B-A", "seed": 2, "error": "it failed"})
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


CONTENDERS = b"""[one]
method = "dann+tcm"
steps = 20
lr = 0.1
options = ["alignment.hidden=8"]

[two]
baseline = "logistic-z"

[three]
preset = "paper"
method = "cdan"
"""
