"""Small features with a gap, a finished run, and the command line inside this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.processes import SMALL, Ended, Inside, command

CLASSES = ("cat", "dög", "<script>alert(1)</script>")


def features(count: int, shift: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(count) % len(CLASSES)
    centres = np.random.default_rng(0).normal(size=(len(CLASSES), 6)) * 2
    x = centres[y] + rng.normal(size=(count, 6)) + shift
    return {"x": x.astype(np.float32), "y": y, "classes": np.array(CLASSES)}


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes an .npz: the good source or target with some arrays changed, or without those that are None."""

    def npz(name: str, count: int = 60, shift: float = 0.0, **changes: Any) -> Path:
        arrays = features(count, shift, len(name)) | changes
        path = tmp_path / f"{name}.npz"
        np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
        return path

    return npz


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Source and target, both with labels."""
    folder = tmp_path_factory.mktemp("some data")
    for name, count, shift in (("source", 60, 0.0), ("target", 45, 1.0)):
        np.savez(folder / f"{name}.npz", **features(count, shift, count))
    return folder / "source.npz", folder / "target.npz"


@pytest.fixture(scope="session")
def finished(data: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """A run, made by a process of its own with a config file, and what it said."""
    folder = tmp_path_factory.mktemp("run")
    source, target = data
    config = folder / "my.toml"
    config.write_text(
        f"source = '{source}'\ntarget = 'nowhere'\nmethod = 'cdan+im'\nbatch_size = 500\nseed = 3\nlr = 0.02\n"
    )
    out = folder / "a run"
    given = ("--target", target, "--method", "dann+tcm", "--seed", 4, "--config", config)
    return out, command("adapt", *given, "--out", out, *SMALL, "--steps", 20, "--json")


@pytest.fixture
def inside(capfd: pytest.CaptureFixture[str]) -> Inside:
    return Inside(capfd)
