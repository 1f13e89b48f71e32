"""Everything that is needed to go on bit for bit, in a file that runs no code when it is read."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import torch

from paretoda.core.problem import StatefulScheme
from paretoda.io.files import atomic_file, sync_file
from paretoda.models.weights import load_stored
from paretoda.training.optimisers import OptimiserGroup
from paretoda.training.step import Step

_KEYS = {"taken", "modules", "optimiser", "scheme", "scaler", "extra"}


class CheckpointError(ValueError):
    """A checkpoint cannot be used; the message says why and what to do."""


def step_state(step: Step, taken: int) -> dict[str, Any]:
    """Everything that a step changes; its tensors are the step's own, not copies.

    Args:
        step: whose networks, optimiser, scheme and scaler are meant.
        taken: how many steps are behind it.
    """
    return {
        "taken": taken,
        "modules": step.modules().state_dict(),
        "optimiser": step.optimiser.state_dict(),
        "scheme": step.scheme.state_dict() if isinstance(step.scheme, StatefulScheme) else {},
        "scaler": step.scaler.state_dict() if step.scaler is not None else {},
    }


def save_checkpoint(path: Path, step: Step, taken: int, extra: dict[str, Any] | None = None) -> None:
    """Write the state after `taken` steps; the checkpoint before it is kept beside it.

    Args:
        path: the checkpoint's file.
        step: whose state is saved.
        taken: how many steps are behind it.
        extra: plain values to keep along with it.
    """
    data = io.BytesIO()  # torch.save hides a full disk behind an error of its own
    torch.save({**step_state(step, taken), "extra": extra or {}}, data)
    with atomic_file(path) as file:
        file.write(data.getbuffer())
        sync_file(file)
        if path.exists():  # only now: a full disk leaves both earlier ones where they are
            path.replace(previous_path(path))


def previous_path(path: Path) -> Path:
    """Where the checkpoint before the last one is."""
    return path.with_name(f"{path.stem}-previous{path.suffix}")


def has_checkpoint(path: Path) -> bool:
    """Whether there is a checkpoint; a run may have been killed when the last had just become the one before."""
    return path.exists() or previous_path(path).exists()


def read_checkpoint(path: Path, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The newest checkpoint that can be read: the last one, or the one before it, which is said."""
    problems = []
    for candidate in (path, previous_path(path)):
        if not candidate.exists():
            continue
        try:
            state = _load(candidate)
        except Exception as error:  # whatever a damaged file makes its readers stumble over
            problems.append(f"{candidate.name}: {(str(error).splitlines() or [type(error).__name__])[0]}")
            continue
        if problems:
            say(
                f"The last checkpoint is damaged ({'; '.join(problems)}); the run goes on from the one before it, "
                f"after step {state['taken']}."
            )
        return state
    reason = "; ".join(problems) if problems else f"there is none at {path}"
    raise CheckpointError(f"no checkpoint can be read ({reason}); start again with --overwrite")


def _load(path: Path) -> dict[str, Any]:
    """The state in a file; torch itself does not look at the checksums of what it reads."""
    if not zipfile.is_zipfile(path):
        raise ValueError("not a checkpoint, or cut off")
    with zipfile.ZipFile(path) as archive:
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise ValueError("its parts are packed, which torch.save never does")
        if (damaged := archive.testzip()) is not None:
            raise ValueError(f"the checksum of {damaged} is wrong")
    state: Any = load_stored(path)
    if not isinstance(state, dict) or not set(state) >= _KEYS:
        raise ValueError("not a checkpoint")
    return dict(state)


def restore_step(step: Step, state: dict[str, Any]) -> int:
    """Put a saved state into a step of the same settings; returns how many steps are behind it."""
    try:
        step.modules().load_state_dict(state["modules"])
        check_optimiser(step.optimiser, state["optimiser"])
        step.optimiser.load_state_dict(state["optimiser"])
        if isinstance(step.scheme, StatefulScheme):
            step.scheme.load_state_dict(state["scheme"])
        if step.scaler is not None and state["scaler"]:
            step.scaler.load_state_dict(state["scaler"])
        if type(state["taken"]) is not int or state["taken"] < 0:
            raise ValueError("it does not say after how many steps it was written")
    except Exception as error:  # whatever the state of another run, or a stranger's file, leads to
        reason = (str(error).splitlines() or [type(error).__name__])[:2][-1].strip()  # torch's second line says which
        raise CheckpointError(
            f"the checkpoint is of another architecture or method ({reason}); start again with --overwrite"
        ) from error
    return int(state["taken"])


def check_optimiser(optimiser: torch.optim.Optimizer, saved: Mapping[str, Any]) -> None:
    """Raise unless its numbers are numbers and its tensors have the shapes of what they move: torch does not look."""
    if isinstance(optimiser, OptimiserGroup):
        for part, state in zip(optimiser.parts, saved["parts"], strict=True):
            check_optimiser(part, state)
        return
    own, moved = optimiser.state_dict(), [p for group in optimiser.param_groups for p in group["params"]]
    for group, given in zip(own["param_groups"], saved["param_groups"], strict=True):
        for name, value in group.items():
            told = given[name]
            if type(told) is not type(value) or (isinstance(told, float) and not isfinite(told)):
                raise ValueError(f"the optimiser's {name} is {told!r}")
            if name != "lr" and isinstance(told, (list, bool, str)) and told != value:
                raise ValueError(f"the optimiser's {name} is another")
    tensors = [
        (name, moved[place].shape, value)
        for place, state in saved["state"].items()
        for name, value in state.items()
        if isinstance(value, torch.Tensor)
    ]
    for name, shape, value in tensors:
        if value.shape not in (shape, torch.Size()) or value.layout != torch.strided:
            raise ValueError(f"the optimiser's {name} has another shape")
