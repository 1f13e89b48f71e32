"""Everything that is needed to go on bit for bit, in a file that runs no code when it is read."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import torch

from paretoda.core.problem import Remembering
from paretoda.training.files import whole_file
from paretoda.training.step import Step


class CheckpointError(ValueError):
    """A checkpoint cannot be used; the message says why and what to do."""


def save(path: Path, step: Step, taken: int, extra: dict[str, Any] | None = None) -> None:
    """Write the state after `taken` steps; the checkpoint before it is kept beside it.

    Args:
        path: the checkpoint's file.
        step: whose networks, optimiser, scheme and scaler are saved.
        taken: how many steps are behind it.
        extra: plain values to keep along with it.
    """
    state = {
        "taken": taken,
        "modules": step.modules().state_dict(),
        "optimiser": step.optimiser.state_dict(),
        "scheme": step.scheme.state_dict() if isinstance(step.scheme, Remembering) else {},
        "scaler": step.scaler.state_dict() if step.scaler is not None else {},
        "extra": extra or {},
    }
    if path.exists():
        path.replace(previous(path))
    with whole_file(path) as file:
        torch.save(state, file)


def previous(path: Path) -> Path:
    """Where the checkpoint before the last one is."""
    return path.with_name(f"{path.stem}-previous{path.suffix}")


def read(path: Path) -> dict[str, Any]:
    """The newest checkpoint that can be read: the last one, or the one before it."""
    problems = []
    for candidate in (path, previous(path)):
        if not candidate.exists():
            continue
        try:
            with warnings.catch_warnings():  # torch warns of a stranger's pickle before it refuses it
                warnings.simplefilter("ignore")
                state: Any = torch.load(candidate, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            problems.append(f"{candidate.name}: {str(error).splitlines()[0]}")
            continue
        if isinstance(state, dict) and {"taken", "modules", "optimiser", "scheme"} <= set(state):
            return dict(state)
        problems.append(f"{candidate.name}: not a checkpoint")
    reason = "; ".join(problems) if problems else f"there is none at {path}"
    raise CheckpointError(f"no checkpoint can be read ({reason}); start again with --overwrite")


def restore(step: Step, state: dict[str, Any]) -> int:
    """Put a saved state into a step of the same settings; returns how many steps are behind it."""
    try:
        step.modules().load_state_dict(state["modules"])
        step.optimiser.load_state_dict(state["optimiser"])
    except (RuntimeError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[:2][-1].strip()  # torch's first line says only that there are errors
        raise CheckpointError(
            f"the checkpoint is of another architecture or method ({reason}); start again with --overwrite"
        ) from error
    if isinstance(step.scheme, Remembering):
        step.scheme.load_state_dict(state["scheme"])
    if step.scaler is not None and state["scaler"]:
        step.scaler.load_state_dict(state["scaler"])
    return int(state["taken"])
