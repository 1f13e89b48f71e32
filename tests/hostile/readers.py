"""Every reader of files: whole files to begin with, how they are damaged, and how they are read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hostile import seeds
from hostile.mutations import (
    Mutation,
    inside_json,
    inside_lines,
    inside_png,
    inside_safetensors,
    inside_toml,
    inside_zip,
    plainly,
)

from paretoda.bench.contenders import read_contenders, select_variants
from paretoda.bench.loading import read_arrays
from paretoda.bench.store import Store
from paretoda.data import examine, open_samples
from paretoda.data.feature_store import _read as read_features
from paretoda.data.open.decoding import check_file, decode
from paretoda.data.segmentation import open_scenes
from paretoda.data.segmentation.label_tables import read_ids, read_palette, read_size
from paretoda.models.weights import load_weights
from paretoda.report.bench_page import render_bench_page
from paretoda.report.page import render_run_page
from paretoda.run.build import build_step
from paretoda.run.candidates import Candidates
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.model_files import read_task
from paretoda.run.result import read_facts
from paretoda.tasks import find_task
from paretoda.tasks.classification.predictor import load_predictor
from paretoda.tasks.segmentation.predictor import load_predictor as load_segmenter
from paretoda.training.checkpoint import read_checkpoint, restore_step

Read = Callable[[Path], Any]


@dataclass(frozen=True)
class Reader:
    """A kind of input.

    Args:
        files: name -> content of whole files; each case damages one of them.
        mutations: ways of damaging them.
        read: called with the path of the damaged file.
        base: a folder that is copied beside it; None for none.
    """

    files: Mapping[str, bytes]
    mutations: Sequence[Mutation]
    read: Read
    base: Path | None = None


def make_readers(folder: Path) -> dict[str, Reader]:
    """All of them by name; the files that they start from are made here."""
    torch.manual_seed(0)
    run, CPU = seeds.run(folder), torch.device("cpu")
    image_model, scene_model = seeds.image_model(folder / "image model"), seeds.scene_model(folder / "scene model")
    outside = seeds.outside_model(folder / "outside model")
    grey = open_samples(seeds.scenes(2)["x"][..., 0], labelled=False)
    rows, scene = (
        open_samples(seeds.features(6)["x"], labelled=False),
        open_scenes(seeds.scenes(1)["x"], labelled=False),
    )
    settings, given = RunDirectory(run).read_config()
    inputs = find_task(settings.task).open(settings, given["source"], given["target"], CPU)
    step = build_step(find_task(settings.task), settings, inputs.pair, CPU)
    pictures = _pictures(folder / "pictures")

    def of(*names: str, source: Path = run) -> dict[str, bytes]:
        return {name: (source / name).read_bytes() for name in names}

    def resumed(path: Path) -> None:
        state = read_checkpoint(path)
        fresh = build_step(find_task(settings.task), settings, inputs.pair, CPU)
        restore_step(fresh, state)
        Candidates("ensemble", RunDirectory(path.parent)).restore(state["extra"])
        fresh(inputs.pair.batch(0, guide=fresh.wants_guide))

    def candidate(path: Path) -> None:
        Candidates("ensemble", RunDirectory(path.parent.parent), taken=[4], scores=[{}]).put_back(0, step)

    def predicts(samples: Any) -> Read:
        return lambda path: load_predictor(path.parent / "model.safetensors", path.parent / "model.json").probabilities(
            samples, refined=samples is rows
        )

    def scene_predicts(path: Path) -> None:
        read_task(path.parent / "model.json")
        model = load_segmenter(path.parent / "model.safetensors", path.parent / "model.json")
        list(model.scenes(scene, refined=True, places=[0]))

    def page(path: Path) -> str:
        return render_run_page(read_facts(RunDirectory(path.parent)))

    archive, tensors = (plainly, inside_zip, inside_zip), (plainly, inside_safetensors, inside_safetensors)
    json_too, png = (plainly, inside_json, inside_json), (plainly, inside_png)
    feature_files = {f"{k}.npz": seeds.npz(seeds.features(12), packed=bool(k)) for k in (0, 1)}
    image_files = {f"{k}.npz": seeds.npz(seeds.scenes(3) | {"y": range(3)}, packed=bool(k)) for k in (0, 1)}
    scene_files = {f"{k}.npz": seeds.npz(seeds.scenes(3), packed=bool(k)) for k in (0, 1)}
    last = (run / "checkpoint" / "last.pt").read_bytes()
    kept = next((run / "checkpoint").glob("candidate-*"), None)
    state = kept.read_bytes() if kept else _state(step)
    pth = seeds.weights()
    return {
        "npz features": Reader(feature_files, archive, _labelled_and_not),
        "npz images": Reader(image_files, archive, _labelled_and_not),
        "npz scenes": Reader(scene_files, archive, _scenes),
        "npz of a suite": Reader(feature_files, archive, read_arrays),
        "doctor": Reader(feature_files, archive, lambda path: examine(str(path), given["target"])),
        "list": Reader({"list.txt": b"a.png cat\nb.png 3\nsub/c d.png\tdog\n"}, [plainly], _labelled_and_not, pictures),
        "scene list": Reader({"scenes.txt": b"a.png la.png\nb.png lb.png\n"}, [plainly], _scenes, pictures),
        "classes.txt": Reader({"classes.txt": b"a\nb\nc\n"}, [plainly], lambda path: _scenes(path.parent), pictures),
        "images": Reader({n: c for n, c in seeds.images().items() if "png" not in n}, [plainly], _image),
        "png images": Reader({n: c for n, c in seeds.images().items() if "png" in n}, png, _image),
        "label maps": Reader({f"{n}.png": c for n, c in seeds.labels().items()}, png, _label_map),
        "checkpoint": Reader({"last.pt": last}, archive, resumed),
        "candidate": Reader({"checkpoint/candidate-00000004.safetensors": state}, tensors, candidate),
        "model.safetensors": Reader(of("model.safetensors"), tensors, predicts(rows), run),
        "model.json": Reader(of("model.json"), json_too, predicts(rows), run),
        "image model.json": Reader(of("model.json", source=image_model), json_too, predicts(grey), image_model),
        "outside model.json": Reader(of("model.json", source=outside), json_too, predicts(grey), outside),
        "scene model.json": Reader(of("model.json", source=scene_model), json_too, scene_predicts, scene_model),
        "scene model": Reader(of("model.safetensors", source=scene_model), tensors, scene_predicts, scene_model),
        "config.toml": Reader(of("config.toml"), [plainly, inside_toml, inside_toml], page, run),
        "metrics.jsonl": Reader(of("metrics.jsonl"), [plainly, inside_lines, inside_lines], page, run),
        "results.json": Reader(of("results.json", "environment.json"), json_too, page, run),
        "predictions.csv": Reader(of("predictions.csv"), [plainly], page, run),
        "runs.jsonl": Reader({"runs.jsonl": seeds.bench_lines()}, [plainly, inside_lines, inside_lines], _bench),
        "contenders": Reader(
            {"c.toml": seeds.CONTENDERS}, [plainly, inside_toml], lambda path: read_contenders(path, {"steps": 5})
        ),
        "weights .pth": Reader({n: c for n, c in pth.items() if n != "w.safetensors"}, archive[:1], _weights),
        "weights .pth inside": Reader({"w.pth": pth["w.pth"]}, archive[1:], _weights),
        "weights .safetensors": Reader({"w.safetensors": pth["w.safetensors"]}, tensors, _weights),
        "stored features": Reader({"f.npz": _features()}, archive, read_features),
    }


def _labelled_and_not(path: Path) -> None:
    samples = open_samples(str(path), labelled=True, skip_bad=path.suffix == ".txt" and path.stat().st_size % 2 == 0)
    samples.names(range(len(samples)))
    samples.digests(range(len(samples)))
    open_samples(str(path), labelled=False)


def _scenes(path: Path) -> None:
    found = open_scenes(str(path), labelled=True)
    found.names(range(len(found)))
    found.read([0])
    found.read_labels([0])


def _image(path: Path) -> None:
    check_file(path, thorough=False)
    decode(path, at_least=4)
    decode(path)


def _label_map(path: Path) -> None:
    read_size(path)
    read_palette(path)
    read_ids(path)


def _weights(path: Path) -> None:
    load_weights(seeds.network(), path)


def _bench(path: Path) -> str:
    # As `paretoda report` does, which tells this ValueError itself.
    rows = select_variants(Store(path.parent).results())
    try:
        return render_bench_page(rows, title="t") if rows else ""
    except ValueError as error:
        if "under different settings" not in str(error):
            raise
        return ""


def _pictures(folder: Path) -> Path:
    (folder / "sub").mkdir(parents=True)
    (folder / "images").mkdir()
    (folder / "labels").mkdir()
    made, ids = seeds.images()["rgb.png"], seeds.labels()["l"]
    for name in ("a.png", "b.png", "sub/c d.png", "images/a.png"):
        (folder / name).write_bytes(made)
    for name in ("la.png", "lb.png", "labels/a.png"):
        (folder / name).write_bytes(ids)
    return folder


def _state(step: Any) -> bytes:
    from safetensors.torch import save

    return save({name: tensor.contiguous() for name, tensor in step.predicting_modules().state_dict().items()})


def _features() -> bytes:
    return seeds.npz({"digests": np.zeros((4, 16), np.uint8), "features": np.ones((4, 3), np.float32)}, packed=False)


def fresh(reader: Reader, place: Path) -> None:
    """An empty folder with what the reader wants beside the damaged file."""
    shutil.rmtree(place, ignore_errors=True)
    if reader.base is None:
        place.mkdir(parents=True)
    else:
        shutil.copytree(reader.base, place)
