"""Checkpoints: everything needed to continue bit for bit, in a file that runs no code when it is read."""

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
    """Return everything that a step changes; the tensors are the step's own, not copies.

    Args:
        step: Step whose networks, optimiser, scheme and scaler are meant.
        taken: Number of steps taken so far.
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
        path: File of the checkpoint.
        step: Step whose state is saved.
        taken: Number of steps taken so far.
        extra: Plain values to keep along with it.
    """
    data = io.BytesIO()  # torch.save hides the error of a full disk
    torch.save({**step_state(step, taken), "extra": extra or {}}, data)
    with atomic_file(path) as file:
        file.write(data.getbuffer())
        sync_file(file)
        if path.exists():  # only now, so that a full disk leaves both earlier ones in place
            path.replace(previous_path(path))


def previous_path(path: Path) -> Path:
    """Path of the checkpoint before the last one."""
    return path.with_name(f"{path.stem}-previous{path.suffix}")


def has_checkpoint(path: Path) -> bool:
    """Return whether there is a checkpoint.

    A run may have been killed after the last checkpoint was renamed to the previous one.
    """
    return path.exists() or previous_path(path).exists()


def read_checkpoint(path: Path, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return the newest checkpoint that can be read: the last one or, with a message, the one before it.

    Args:
        path: File of the last checkpoint.
        say: Called with a sentence where the last checkpoint is damaged.

    Returns:
        The state, for `restore_step`.

    Raises:
        CheckpointError: No checkpoint can be read.
    """
    problems = []
    for candidate in (path, previous_path(path)):
        if not candidate.exists():
            continue
        try:
            state = _load(candidate)
        except Exception as error:  # a damaged file makes its readers raise any kind of error
            problems.append(f"{candidate.name}: {(str(error).splitlines() or [type(error).__name__])[0]}")
            continue
        if problems:
            say(
                f"The last checkpoint is damaged ({'; '.join(problems)}); the run continues from the one before it, "
                f"after step {state['taken']}."
            )
        return state
    reason = "; ".join(problems) if problems else f"there is none at {path}"
    raise CheckpointError(f"no checkpoint can be read ({reason}); start again with --overwrite")


def _load(path: Path) -> dict[str, Any]:
    """Return the state in a file; its checksums are verified here, because torch does not verify them."""
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
    """Put a saved state into a step of the same settings.

    Args:
        step: Step with the same networks, optimiser and scheme.
        state: Result of `step_state` or `read_checkpoint`.

    Returns:
        The number of steps taken so far.

    Raises:
        CheckpointError: The state is not of such a step.
    """
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
    except Exception as error:  # the state of another run, or a forged file, can raise any kind of error
        reason = (str(error).splitlines() or [type(error).__name__])[:2][-1].strip()  # torch's second line is specific
        raise CheckpointError(
            f"the checkpoint is of another architecture or method ({reason}); start again with --overwrite"
        ) from error
    return int(state["taken"])


def check_optimiser(optimiser: torch.optim.Optimizer, saved: Mapping[str, Any]) -> None:
    """Raise a `ValueError` unless the saved state fits the optimiser: torch itself does not check it.

    Its numbers must be finite and its tensors must have the shapes of the parameters.
    """
    if isinstance(optimiser, OptimiserGroup):
        for part, state in zip(optimiser.parts, saved["parts"], strict=True):
            check_optimiser(part, state)
        return
    own, moved = optimiser.state_dict(), [p for group in optimiser.param_groups for p in group["params"]]
    for group, given in zip(own["param_groups"], saved["param_groups"], strict=True):
        for name, value in group.items():
            saved_value = given[name]
            if type(saved_value) is not type(value) or (isinstance(saved_value, float) and not isfinite(saved_value)):
                raise ValueError(f"the optimiser's {name} is {saved_value!r}")
            if name != "lr" and isinstance(saved_value, (list, bool, str)) and saved_value != value:
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
