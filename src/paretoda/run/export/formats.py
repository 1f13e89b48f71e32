"""The file of an export: made in memory, compared with the run's own predictions, and written only where they agree."""

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
from paretoda.run.export.comparison import check, example
from paretoda.run.export.program import Program

Format = Literal["onnx", "torch"]
Run = Callable[[Tensor], Sequence[NDArray[Any]]]
"""Inputs -> outputs of the file."""
_MISSING = 'writing ONNX files needs further packages: pip install "paretoda[onnx]"'
_METADATA = "paretoda.json"
_FATAL = 4
"""What onnxruntime writes to stderr by itself; all else comes as an exception."""


def write_program(program: Program, kind: Format, path: Path, facts: dict[str, str]) -> float:
    """Make the file, compare what it computes with the run, and write it; RunError where they differ.

    Args:
        program: of the run.
        kind: of the file.
        path: of the file.
        facts: names and texts that are stored with it.

    Returns:
        The largest difference that was found.
    """
    if kind == "onnx":
        _check_packages()
    with _quiet():
        traced = _traced(program)
        data, run = _onnx(program, traced, facts) if kind == "onnx" else _torch(traced, facts)
        difference = check(program, run, any_size=len(program.free_axes) > 1)
    with atomic_file(path) as file:
        file.write(data)
    return difference


def _check_packages() -> None:
    try:
        for name in ("onnx", "onnxscript", "onnxruntime"):
            import_module(name)
    except ImportError as error:
        raise RunError(_MISSING) from error


def _traced(program: Program) -> ExportedProgram:
    """The program with symbols for the axes that may have any length."""
    free = dict.fromkeys(program.free_axes, Dim.AUTO)
    traced = torch.export.export(program.module, (example(program, 2),), dynamic_shapes=(free,))
    _check_free(program, traced)
    return traced


def _check_free(program: Program, traced: ExportedProgram) -> None:
    """Raise where torch has fixed an axis that should have been free."""
    name = traced.graph_signature.user_inputs[0]
    (node,) = (node for node in traced.graph.nodes if node.name == name)
    if fixed := [axis for axis in program.free_axes if isinstance(node.meta["val"].shape[axis], int)]:
        raise RunError(f"torch cannot export this network with axis {fixed[0]} of its input free; please report it")


def _onnx(program: Program, traced: ExportedProgram, facts: dict[str, str]) -> tuple[bytes, Run]:
    import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415

    made = torch.onnx.export(
        traced, dynamo=True, verbose=False, input_names=[program.input_name], output_names=program.output_names
    )
    if made is None:
        raise RunError("torch gave no ONNX program for this model; please report it")
    data = _plain(made.model_proto, facts)
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


def _plain(proto: Any, facts: dict[str, str]) -> bytes:
    """The model's bytes with our facts, and without the paths of source files that torch puts beside every node."""
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


def _torch(traced: ExportedProgram, facts: dict[str, str]) -> tuple[bytes, Run]:
    file = io.BytesIO()
    torch.export.save(traced, file, extra_files={_METADATA: json.dumps(facts, sort_keys=True)})
    file.seek(0)
    module = torch.export.load(file).module()

    def run(inputs: Tensor) -> Sequence[NDArray[Any]]:
        return [found.numpy() for found in module(inputs)]

    return file.getvalue(), run


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside, torch does not warn of packages that are not installed, nor of its own old ways."""
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
