"""model.safetensors + model.json, whatever the task: named parts of tensors and a description, without code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from paretoda.errors import RunError
from paretoda.io.files import atomic_file, write_json
from paretoda.models.weights import check_shapes
from paretoda.objectives.target.tcm import Tcm

_FORMAT = 1
AnyModule = TypeVar("AnyModule", bound=nn.Module)


def write_model(
    weights: Path, description: Path, parts: Mapping[str, Mapping[str, Tensor]], facts: Mapping[str, Any]
) -> None:
    """Write both files; the description first, so that weights are never without one.

    Args:
        weights: file of the tensors.
        description: file of all else.
        parts: name -> tensors by name.
        facts: JSON values.
    """
    tensors = {
        f"{part}.{name}": tensor.detach().cpu().contiguous()
        for part, state in sorted(parts.items())
        for name, tensor in sorted(state.items())
    }
    write_json(description, {"format": _FORMAT, **facts})
    with atomic_file(weights) as file:
        file.write(save_tensors(tensors))


def check_format(facts: Mapping[str, Any]) -> None:
    """Raise unless the description is of this version."""
    if facts["format"] != _FORMAT:
        raise ValueError(f"format {facts['format']} instead of {_FORMAT}")


def part_of(tensors: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors of one part, under their own names."""
    return {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}


def load_module(build: Callable[[], AnyModule], state: Mapping[str, Tensor]) -> AnyModule:
    """The network with that state; it is built only where the state fits, so that it is no larger than its file."""
    check_shapes(build, state, Path("the file"))
    network = build()
    network.load_state_dict(state)
    return network


def require_refiner(refiner: Tcm | None) -> Tcm:
    """The class-wise discriminators that refine predictions, or a RunError where the run has none."""
    if refiner is None:
        raise RunError("this model was not trained with the target loss 'tcm', so it has no refined predictions")
    return refiner
