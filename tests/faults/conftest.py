"""Small features as files, the settings of a run that uses every kind of file, and a process that forks."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults.forks import Forks

STEPS = 9
SMALL = ("--steps", STEPS, "--checkpoint-every", 3, "--evaluate-every", 4, "--refresh-every", 4, "--bottleneck", 8)
LOSSES = ("--method", "dann+tcm+propagation", "--options", "target.width=4,alignment.hidden=8")
RUN = (*SMALL, "--batch-size", 16, "--reference", "--members", 2, *LOSSES)
"""Checkpoints, candidates, a choice, a reference, and everything that a finished run leaves."""


def features(count: int, shift: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 3
    centres = np.random.default_rng(0).normal(size=(3, 6)) * 2
    x = centres[y] + rng.normal(size=(count, 6)) + shift
    return {"x": x.astype(np.float32), "y": y, "classes": np.array(["ant", "bee", "cat"])}


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """`--source S --target T`."""
    folder = tmp_path_factory.mktemp("data")
    for name, count, shift in (("source", 60, 0.0), ("target", 45, 1.0)):
        np.savez(folder / f"{name}.npz", **features(count, shift, count))
    return ("--source", str(folder / "source.npz"), "--target", str(folder / "target.npz"))


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Commands in processes of their own."""
    server = Forks()
    yield server
    server.close()


@pytest.fixture(scope="session")
def whole(forks: Forks, inputs: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of a run that nobody disturbs."""
    out = tmp_path_factory.mktemp("whole") / "run"
    answer = forks.command("adapt", *inputs, "--out", out, *RUN)
    assert answer.code == 0, answer.err
    return forks.listing(out)


@pytest.fixture(scope="session")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Forks, Path]]:
    """A disk of our own, which only the process that forks sees; skipped, visibly, where none can be mounted."""
    disk = tmp_path_factory.mktemp("disk")
    wrapper = ("unshare", "-Urm")
    probe = [*wrapper, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if shutil.which("unshare") is None or subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here (unshare -Urm, mount -t tmpfs)")
    server = Forks(*wrapper)
    assert server.ask(shell=f"mount -t tmpfs -o size=64m,nr_inodes=1000 tmpfs {disk}") == 0
    yield server, disk
    server.close()
