"""The files model.safetensors and model.json of every task: named parts of tensors and a description, without code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from paretoda.errors import RunError
from paretoda.io.files import atomic_file, parse_json, write_json
from paretoda.models.weights import check_shapes

_FORMAT = 1
_TASK_IF_UNNAMED = "classification"
AnyModule = TypeVar("AnyModule", bound=nn.Module)
Refiner = TypeVar("Refiner")


def write_model(
    weights: Path, description: Path, parts: Mapping[str, Mapping[str, Tensor]], facts: Mapping[str, Any]
) -> None:
    """Write both files; the description first, so that weights are never without one.

    Args:
        weights: File of the tensors.
        description: File of everything else.
        parts: Name of a part -> its tensors by name.
        facts: JSON values of the description.
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
    """Raise ValueError unless the description has the format of this version."""
    if facts["format"] != _FORMAT:
        raise ValueError(f"format {facts['format']} instead of {_FORMAT}")


def select_part(tensors: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return the tensors of one part, under their own names."""
    return {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}


def load_module(build: Callable[[], AnyModule], state: Mapping[str, Tensor]) -> AnyModule:
    """Build a network with that state, only where the state fits: a small file cannot ask for a huge network."""
    check_shapes(build, state, Path("the file"))
    network = build()
    network.load_state_dict(state)
    return network


def require_refiner(refiner: Refiner | None) -> Refiner:
    """Return the class-wise discriminators that refine predictions, or raise RunError where the run has none."""
    if refiner is None:
        raise RunError("this model was not trained with the target loss 'tcm', so it has no refined predictions")
    return refiner


def read_task(description: Path) -> str:
    """Read which task a model is of; descriptions without a task, or that cannot be read, count as classification."""
    try:
        facts = parse_json(description.read_bytes())
    except (OSError, ValueError):
        return _TASK_IF_UNNAMED
    return str(facts.get("task", _TASK_IF_UNNAMED)) if isinstance(facts, dict) else _TASK_IF_UNNAMED
