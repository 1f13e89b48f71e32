"""`paretoda export` as a function: from a finished run to one file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paretoda import __version__
from paretoda.data.scaling import FeatureTransform
from paretoda.data.transforms import ImageTransform
from paretoda.errors import RunError
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.export.formats import Format, write_program
from paretoda.run.export.program import Program, make_program
from paretoda.tasks.classification.predictor import Predictor, load_predictor
from paretoda.tasks.segmentation.predictor import ScenePredictor, is_segmentation, load_scene_predictor

_CROPS = "The run predicts from 10 crops of an image; the file takes the middle one, as `predict --crops 1` does."


@dataclass(frozen=True)
class Exported:
    """What was written.

    Args:
        path: of the file.
        input_name: of what goes in.
        input_shape: with names for what may have any length.
        input_type: of its numbers.
        outputs: names.
        difference: the largest between the file and the run.
    """

    path: Path
    input_name: str
    input_shape: tuple[str | int, ...]
    input_type: str
    outputs: tuple[str, ...]
    difference: float


def export_run(
    run: Path,
    kind: Format,
    out: Path | None = None,
    *,
    transforms: bool = False,
    refined: bool = False,
    preference: Sequence[float] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Exported:
    """Write a finished run's model as one file, after it was compared with the run.

    Args:
        run: directory of a finished run.
        kind: "onnx", or "torch" for a program of torch.export.
        out: of the file; None: model.onnx or model.pt2 in the run.
        transforms: images go in as RGB bytes of any size, and are resized in the file.
        refined: the refined predictions of a run with tcm come out, too.
        preference: of a run of the scheme "hypernetwork".
        say: called with what the user should know.
    """
    directory = RunDirectory(run)
    out = out or directory.exported[kind]
    if out.is_dir():
        raise RunError(f"{out} is a directory; give a file with --out")
    program = make_program(_open(directory, preference, say), transforms=transforms, refined=refined)
    say("Making the file and comparing it with the run; this takes up to a minute.")
    difference = write_program(program, kind, out, _facts(program))
    shape, dtype = _input(program)
    return Exported(out, program.input_name, shape, dtype, tuple(program.output_names), difference)


def _open(
    directory: RunDirectory, preference: Sequence[float] | None, say: Callable[[str], None]
) -> Predictor | ScenePredictor:
    if is_segmentation(directory.description):
        if preference is not None:
            raise RunError("this is a run of segmentation; leave out --preference")
        return load_scene_predictor(directory.model, directory.description)
    predictor = load_predictor(directory.model, directory.description)
    if predictor.crops > 1:
        say(_CROPS)
        predictor = predictor.cropping(1)
    return predictor if preference is None else predictor.preferring(preference)


def _input(program: Program) -> tuple[tuple[str | int, ...], str]:
    """Shape and type of what goes in."""
    transform: Any = program.predictor.transform
    if isinstance(transform, FeatureTransform):
        return ("n", len(transform.mean)), "float32"
    if program.transforms:
        return ("n", "height", "width", 3), "uint8"
    images = isinstance(transform, ImageTransform)
    width, height = (transform.size, transform.size) if images else transform.size
    free = len(program.free_axes) > 1
    sides: tuple[str | int, ...] = ("height", "width") if free else (height, width)
    return ("n", transform.channels if images else 3, *sides), "float32"


def _facts(program: Program) -> dict[str, str]:
    """What is stored with the file: texts, lists as JSON."""
    predictor, (shape, dtype) = program.predictor, _input(program)
    facts: dict[str, Any] = {
        "producer": f"paretoda {__version__}",
        "task": "classification" if isinstance(predictor, Predictor) else "segmentation",
        "classes": list(predictor.classes),
        "input": {"name": program.input_name, "shape": list(shape), "type": dtype, "transforms": program.transforms},
        "outputs": program.output_names,
        "transform": predictor.transform.to_json(),
    }
    if isinstance(predictor, Predictor):
        facts["temperature"] = predictor.temperature
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in facts.items()}
