"""Whether an exported file computes what the run computes: several batches, several sizes, to 1e-5."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.data import open_samples
from paretoda.data.scaling import FeatureTransform
from paretoda.data.transforms import ImageTransform
from paretoda.errors import RunError
from paretoda.run.export.program import Program
from paretoda.tasks.segmentation.predictor import ScenePredictor

TOLERANCE = 1e-5
"""Of probabilities; of logits, times the largest of them where it is above 1."""
_BATCHES = (1, 2, 5)
_CELL = 4


def check(program: Program, run: Callable[[Tensor], Sequence[NDArray[Any]]], *, any_size: bool) -> float:
    """The largest difference between the file, the module that it was made of, and the run's own predictor.

    Args:
        program: what was written.
        run: inputs -> outputs of the file.
        any_size: whether images of other sizes than the network's go in.

    Raises:
        RunError: a difference is above the tolerance.
    """
    worst = 0.0
    for inputs, probabilities in _cases(program, any_size=any_size):
        found = dict(zip(program.output_names, run(inputs), strict=True))
        wanted = dict(zip(program.output_names, (part.numpy() for part in program.module(inputs)), strict=True))
        if "labels" in found:  # of two classes that are equally probable, either may win
            chosen = np.take_along_axis(wanted["probabilities"], found.pop("labels")[:, None], 1)[:, 0]
            found["labels"], wanted["labels"] = chosen, wanted["probabilities"].max(1)
        pairs = [(name, found[name], wanted[name]) for name in found]
        if probabilities is not None:
            pairs += [(name, found[name], probabilities[name]) for name in probabilities]
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


def example(program: Program, count: int) -> Tensor:
    """Inputs of the shape that the network was trained with."""
    raw = _raw(program, count, _own_size(program), seed=count)
    return torch.from_numpy(raw) if program.transforms or raw.ndim == 2 else program.predictor.transform.evaluate(raw)


def _cases(program: Program, *, any_size: bool) -> Iterator[tuple[Tensor, dict[str, NDArray[np.float32]] | None]]:
    """Inputs of the file, and what the run's predictor makes of them, where it can say."""
    height, width = _own_size(program)
    sizes = [(height, width)]
    if any_size:
        sizes += [(height + 17, width + 6), (height + 8, 3 * width), (3 * height + 1, width + 9)]
    for place, (count, size) in enumerate((count, size) for size in sizes for count in _BATCHES):
        raw = _raw(program, count, size, seed=place)
        if program.transforms or raw.ndim == 2:
            yield torch.from_numpy(raw), _predicted(program, raw)
        elif size == (height, width):
            yield program.predictor.transform.evaluate(raw), _predicted(program, raw)
        else:
            generator = torch.Generator().manual_seed(place)
            channels = example(program, 1).shape[1]
            yield torch.randn(count, channels, *size, generator=generator), None


def _predicted(program: Program, raw: NDArray[Any]) -> dict[str, NDArray[np.float32]]:
    """What `paretoda predict` gives for the raw samples."""
    names = {"probabilities": False} | ({"refined": True} if "refined" in program.output_names else {})
    predictor = program.predictor
    if isinstance(predictor, ScenePredictor):
        return {
            name: np.stack([predictor.probabilities(image, refined=refined).numpy() for image in raw])
            for name, refined in names.items()
        }
    samples = open_samples(raw, labelled=False)
    return {name: predictor.probabilities(samples, refined=refined) for name, refined in names.items()}


def _own_size(program: Program) -> tuple[int, int]:
    """Height and width that raw images need not be resized from."""
    transform: Any = program.predictor.transform
    if isinstance(transform, FeatureTransform):
        return 0, 0
    if isinstance(transform, ImageTransform):
        return transform.resized, transform.resized
    width, height = transform.size
    return height, width


def _raw(program: Program, count: int, size: tuple[int, int], seed: int) -> NDArray[Any]:
    """Made-up samples as the run's predictor takes them: features around their mean, or images with coarse patches."""
    rng = np.random.default_rng(seed)
    transform: Any = program.predictor.transform
    if isinstance(transform, FeatureTransform):
        noise = rng.standard_normal((count, len(transform.mean))).astype(np.float32)
        drawn: NDArray[np.float32] = transform.mean.numpy() + noise * transform.std.numpy()
        return drawn
    height, width = size
    coarse = rng.integers(0, 256, (count, -(-height // _CELL), -(-width // _CELL), 3))
    fine = rng.integers(-20, 21, (count, height, width, 3))
    patches = coarse.repeat(_CELL, axis=1).repeat(_CELL, axis=2)[:, :height, :width]
    return (patches + fine).clip(0, 255).astype(np.uint8)
