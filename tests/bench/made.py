"""Small features in the files of the suite `office-caltech10`, and plans over them that take a second."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from paretoda.bench.contenders import Contender, RunSpec, plan
from paretoda.bench.suites import find_suite

SUITE = "office-caltech10"
QUICK = {"steps": 6, "select": "last", "bottleneck": 8, "batch_size": 16}
SUM = Contender("sum", {"method": "dann", "scheme": "linear", **QUICK})
ALONE = Contender("alone", {"method": "source-only", **QUICK})
FLAGS = [part for name, value in QUICK.items() for part in (f"--{name.replace('_', '-')}", str(value))]


def write_features(folder: Path) -> Path:
    (folder / SUITE).mkdir(parents=True)
    for seed, name in enumerate(("amazon", "caltech10", "dslr", "webcam")):
        rng, y = np.random.default_rng(seed), np.arange(60) % 3
        x = np.eye(3, 6)[y] * 2 + rng.normal(size=(60, 6)) + 0.3 * seed
        np.savez(folder / SUITE / f"{name}-surf.npz", x=x.astype(np.float32), y=y, classes=["a", "b", "c"])
    return folder


def specs(*contenders: Contender, tasks: tuple[str, ...] = ("A-C",), seeds: int = 1) -> list[RunSpec]:
    return plan(SUITE, find_suite(SUITE), contenders, seeds=seeds, tasks=tasks)


def wait_for(what: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def whole_lines(directory: Path) -> int:
    path = directory / "runs.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def alive_in_group(group: int) -> list[int]:
    """Processes of a group that still run; those that nobody has buried do not count."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, _, its_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            except OSError:
                continue
            found += [int(entry.name)] if int(its_group) == group and state != "Z" else []
    return found


def environment(data: Path) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "PARETODA_DATA": str(data)}
