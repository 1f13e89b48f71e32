"""The formats of an export: a file is made in memory, compared with the run, and written only where they agree."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.export import Dim, ExportedProgram

from paretoda.errors import RunError
from paretoda.io.files import atomic_file
from paretoda.run.export.comparison import compare, draw_example
from paretoda.run.export.program import Program

Format = Literal["onnx", "torch"]
Runner = Callable[[Tensor], Sequence[NDArray[Any]]]
"""Computes the outputs of the file from inputs."""
_MISSING = 'writing ONNX files needs further packages: pip install "paretoda[onnx]"'
_METADATA = "paretoda.json"
_FATAL = 4
"""Severity from which on onnxruntime writes to stderr by itself; all else comes as an exception."""


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
