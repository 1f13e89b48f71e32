"""Comparison of an exported file with the run: several batch sizes, several image sizes, to 1e-5."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.errors import RunError
from paretoda.run.export.program import Program

TOLERANCE = 1e-5
"""Largest difference of probabilities; of logits, relative to the largest of them where it is above 1."""
_BATCHES = (1, 2, 5)


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
    size = max(1.0, float(np.abs(other).max())) if name == "logits" else 1.0
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
