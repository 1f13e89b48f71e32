"""Exporting a program: the file is made in memory, compared with the run, and written only where they agree."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.export import Dim, ExportedProgram

from paretoda import __version__
from paretoda.errors import RunError
from paretoda.io.files import atomic_file
from paretoda.run.export.program import Program

TOLERANCE = 1e-5
"""Largest difference of probabilities; of logits and values, relative to the largest of them where it is above 1."""
_BATCHES = (1, 2, 5)
Format = Literal["onnx", "torch"]
Runner = Callable[[Tensor], Sequence[NDArray[Any]]]
"""Computes the outputs of the file from inputs."""
_UNBOUNDED = ("logits", "value")
"""Outputs whose differences are relative to the largest of them."""
_MISSING = 'writing ONNX files needs further packages: pip install "paretoda[onnx]"'
_METADATA = "paretoda.json"
_FATAL = 4
"""Severity from which on onnxruntime writes to stderr by itself; all else comes as an exception."""


def compare(program: Program, run: Callable[[Tensor], Sequence[NDArray[Any]]], *, any_size: bool) -> float:
    """Return the largest difference between the file, the module that it was made of, and the run's own predictor.

    Args:
        program: The program that was exported.
        run: Computes the outputs of the file from inputs.
        any_size: Whether the file takes images of other sizes than the network's.

    Raises:
        RunError: A difference is above the tolerance.
    """
    worst = 0.0
    for inputs, predictions in _cases(program, any_size=any_size):
        found = dict(zip(program.output_names, run(inputs), strict=True))
        wanted = dict(zip(program.output_names, (part.numpy() for part in program.module(inputs)), strict=True))
        if "labels" in found:  # of two classes that are equally probable, either may win
            chosen = np.take_along_axis(wanted["probabilities"], found.pop("labels")[:, None], 1)[:, 0]
            found["labels"], wanted["labels"] = chosen, wanted["probabilities"].max(1)
        pairs = [(name, found[name], wanted[name]) for name in found]
        pairs += [(name, found[name], predictions[name]) for name in predictions]
        for name, one, other in pairs:
            worst = max(worst, _difference(name, one, other))
    return worst


def _difference(name: str, one: NDArray[Any], other: NDArray[Any]) -> float:
    size = max(1.0, float(np.abs(other).max())) if name in _UNBOUNDED else 1.0
    found = float(np.abs(one.astype(np.float64) - other).max()) / size if one.shape == other.shape else float("nan")
    if not found <= TOLERANCE:
        raise RunError(
            f"the exported model's {name} differ by {found:.2g} from the run's, more than {TOLERANCE:g}; "
            "nothing was written: please report it"
        )
    return found


def draw_example(program: Program, count: int) -> Tensor:
    """Draw inputs of the shape that the network was trained with."""
    return program.inputs(program.draw_raw(count, program.raw_size, seed=count))


def _cases(program: Program, *, any_size: bool) -> Iterator[tuple[Tensor, dict[str, NDArray[np.float32]]]]:
    """Yield inputs of the file, and the predictions of the run's own predictor as far as it can make them."""
    height, width = program.raw_size
    sizes = [(height, width)]
    if any_size:
        sizes += [(height + 17, width + 6), (height + 8, 3 * width), (3 * height + 1, width + 9)]
    for place, (count, size) in enumerate((count, size) for size in sizes for count in _BATCHES):
        if program.transforms or size == (height, width):
            raw = program.draw_raw(count, size, seed=place)
            yield program.inputs(raw), program.predict(raw)
        else:
            generator = torch.Generator().manual_seed(place)
            channels = draw_example(program, 1).shape[1]
            yield torch.randn(count, channels, *size, generator=generator), {}


def write_program(program: Program, kind: Format, path: Path) -> float:
    """Make the file, compare what it computes with the run, and write it.

    Args:
        program: The program of the run.
        kind: Format of the file.
        path: Path of the file.

    Returns:
        The largest difference that was found.

    Raises:
        RunError: The file and the run differ, or packages are missing.
    """
    facts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in program.facts.items()}
    if kind == "onnx":
        _check_packages()
    with _quiet():
        traced = _trace(program)
        data, run = _onnx(program, traced, facts) if kind == "onnx" else _torch(traced, facts)
        difference = compare(program, run, any_size=len(program.free_axes) > 1)
    with atomic_file(path) as file:
        file.write(data)
    return difference


def _check_packages() -> None:
    try:
        for name in ("onnx", "onnxscript", "onnxruntime"):
            import_module(name)
    except ImportError as error:
        raise RunError(_MISSING) from error


def _trace(program: Program) -> ExportedProgram:
    """Trace the program with symbols for the axes that may have any length."""
    free = dict.fromkeys(program.free_axes, Dim.AUTO)
    traced = torch.export.export(program.module, (draw_example(program, 2),), dynamic_shapes=(free,))
    _check_free(program, traced)
    return traced


def _check_free(program: Program, traced: ExportedProgram) -> None:
    """Raise where torch has fixed an axis that should have been free."""
    name = traced.graph_signature.user_inputs[0]
    (node,) = (node for node in traced.graph.nodes if node.name == name)
    if fixed := [axis for axis in program.free_axes if isinstance(node.meta["val"].shape[axis], int)]:
        raise RunError(f"torch cannot export this network with axis {fixed[0]} of its input free; please report it")


def _onnx(program: Program, traced: ExportedProgram, facts: dict[str, str]) -> tuple[bytes, Runner]:
    import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415

    made = torch.onnx.export(
        traced, dynamo=True, verbose=False, input_names=[program.input_name], output_names=program.output_names
    )
    if made is None:
        raise RunError("torch gave no ONNX program for this model; please report it")
    data = _serialise(made.model_proto, facts)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = _FATAL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])

    def run(inputs: Tensor) -> Sequence[NDArray[Any]]:
        try:
            found = session.run(program.output_names, {program.input_name: inputs.numpy()})
        except Exception as error:  # whatever onnxruntime stumbles over
            shape = tuple(inputs.shape)
            raise RunError(
                f"onnxruntime cannot run the file on {shape}; nothing was written: please report it"
            ) from error
        return [np.asarray(part) for part in found]

    return data, run


def _serialise(proto: Any, facts: dict[str, str]) -> bytes:
    """Return the model's bytes with our facts, without the paths of source files that torch puts beside every node."""
    del proto.metadata_props[:]
    for part in (proto.graph, *proto.functions, *proto.graph.node):
        del part.metadata_props[:]
        part.doc_string = ""
    for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        del value.metadata_props[:]
    for key, text in sorted(facts.items()):
        proto.metadata_props.add(key=key, value=text)
    found: bytes = proto.SerializeToString(deterministic=True)
    return found


def _torch(traced: ExportedProgram, facts: dict[str, str]) -> tuple[bytes, Runner]:
    file = io.BytesIO()
    torch.export.save(traced, file, extra_files={_METADATA: json.dumps(facts, sort_keys=True)})
    file.seek(0)
    module = torch.export.load(file).module()

    def run(inputs: Tensor) -> Sequence[NDArray[Any]]:
        return [found.numpy() for found in module(inputs)]

    return file.getvalue(), run


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence torch's warnings about packages that are not installed and about its own deprecations."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        logger.setLevel(before)


@dataclass(frozen=True)
class Exported:
    """What was written.

    Args:
        path: Path of the file.
        input_name: Name of the input.
        input_shape: Shape of the input, with names for axes of any length.
        input_type: Type of the input's numbers.
        outputs: Names of the outputs.
        difference: The largest difference between the file and the run.
    """

    path: Path
    input_name: str
    input_shape: tuple[str | int, ...]
    input_type: str
    outputs: tuple[str, ...]
    difference: float


def export_program(program: Program, kind: Format, out: Path, say: Callable[[str], None]) -> Exported:
    """Write a program as one file, after it was compared with the run.

    Args:
        program: The program of a finished run.
        kind: "onnx", or "torch" for a program of torch.export.
        out: Path of the file.
        say: Called with what the user should know.

    Raises:
        RunError: The file differs from the run, or packages are missing.
    """
    program.facts |= {
        "producer": f"paretoda {__version__}",
        "input": {
            "name": program.input_name,
            "shape": list(program.input_shape),
            "type": program.input_type,
            "transforms": program.transforms,
        },
        "outputs": program.output_names,
    }
    for note in program.notes:
        say(note)
    say("Making the file and comparing it with the run; this takes up to a minute.")
    difference = write_program(program, kind, out)
    return Exported(
        out, program.input_name, program.input_shape, program.input_type, tuple(program.output_names), difference
    )
