"""`paretoda export` as a function: from a predictor to one file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paretoda import __version__
from paretoda.run.export.formats import Format, write_program
from paretoda.run.export.program import Program


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
