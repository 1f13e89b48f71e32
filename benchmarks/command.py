"""The whole default command against a DANN loop written by hand: CPU and wall time, alone and beside a busy neighbour.

    python benchmarks/command.py [--source NPZ] [--target NPZ] [--steps 500] [--rounds 3] [--members 5] [--json]
                                 [-- OPTIONS OF `paretoda adapt`]

Everything runs in processes of its own, in turns. A ratio is the median over the rounds of CPU time by the CPU time of
the loop (`peer_jobs/loop.py`) in the same round. "Where the time goes" comes from timers around the functions of the
engine, in units of the loop. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("PARETODA_DATA", HERE.parents[1] / "shared" / "data"))
PARTS = {
    "paretoda.tasks.classification.task.Classification.open": "data",
    "paretoda.training.step.Step.__call__": "steps",
    "paretoda.run.train.take_snapshot": "whole-set passes",
    "paretoda.run.candidates.Candidates.add": "candidates",
    "paretoda.run.reference.Reference.scores": "reference",
    "paretoda.run.finish._score": "final scores",
    "paretoda.run.engine.write_results": "files and page",
}
"""Function of the engine -> the row that its CPU time, without that of the other rows, is added to."""


class Timers:
    """CPU time of this process by part; the time of an inner part is not counted in the outer one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.first_step: float | None = None
        self._open: list[float] = []

    def around(self, name: str, function: Any) -> Any:
        """Return the function with a timer around it."""

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            self._open.append(0.0)
            start = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent = time.process_time() - start
                inner = self._open.pop()
                self.seconds[name] = self.seconds.get(name, 0.0) + spent - inner
                if self._open:
                    self._open[-1] += spent
                if name == "steps" and self.first_step is None:
                    self.first_step = time.process_time()

        return timed


def run_timed(arguments: list[str]) -> None:
    """Run a command of ours in this process with timers, and print what they say as the last line."""
    from importlib import import_module

    timers = Timers()
    start = time.process_time()
    import paretoda.api  # noqa: F401

    timers.seconds["imports"] = time.process_time() - start
    for path, name in PARTS.items():
        owner, _, function = path.rpartition(".")
        try:
            place: Any = import_module(owner)
        except ImportError:
            module, _, cls = owner.rpartition(".")
            place = getattr(import_module(module), cls)
        setattr(place, function, timers.around(name, getattr(place, function)))
    from paretoda.cli import main

    with contextlib.suppress(SystemExit):
        main(arguments)
    whole = time.process_time()
    timers.seconds["the rest"] = whole - sum(timers.seconds.values())
    print("\n" + json.dumps({"whole": whole, "first step": timers.first_step, "parts": timers.seconds}))


def measure(command: list[str]) -> dict[str, Any]:
    """Run a process; return its CPU time with that of its children, its wall time and its last line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **threads()})
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stderr or done.stdout)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    last = (done.stdout.strip().splitlines() or [""])[-1]
    return {"cpu": cpu, "wall": wall, **(json.loads(last) if last.startswith("{") else {})}


def threads() -> dict[str, str]:
    """A new user's environment: nothing says how many threads to use."""
    os.environ.pop("OMP_NUM_THREADS", None)
    return {}


@contextlib.contextmanager
def busy_neighbour() -> Iterator[None]:
    """Inside, other programs keep all cores busy, one each."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] == "--timed":
        run_timed(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", default=str(DATA / "pacs" / "art_painting-effnetlite0.npz"))
    parser.add_argument("--target", default=str(DATA / "pacs" / "cartoon-effnetlite0.npz"))
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--members", type=int, default=5, help="0 leaves this variant out")
    parser.add_argument("--no-neighbour", action="store_true")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("more", nargs="*", help="options of `paretoda adapt`, after --")
    arguments = parser.parse_args()
    data = [arguments.source, arguments.target]
    steps = ["--steps", str(arguments.steps)]
    inputs = ["--source", data[0], "--target", data[1], *steps, *arguments.more]
    variants: dict[str, list[str]] = {"one network": []} | (
        {f"{arguments.members} members": ["--members", str(arguments.members)]} if arguments.members else {}
    )
    rows: dict[str, list[dict[str, Any]]] = {}
    numbers = count()
    with tempfile.TemporaryDirectory() as folder:
        loop = [sys.executable, str(HERE / "peer_jobs" / "loop.py"), *data, steps[1], str(Path(folder) / "loop.npy")]

        def adapt(options: list[str], *, timed: bool = False) -> dict[str, Any]:
            program = [str(HERE / "command.py"), "--timed"] if timed else ["-m", "paretoda"]
            out = str(Path(folder) / f"run-{next(numbers)}")
            return measure([sys.executable, *program, "adapt", *inputs, *options, "--out", out, "--quiet"])

        for _ in range(arguments.rounds):
            rows.setdefault("loop", []).append(measure(loop))
            for name, options in variants.items():
                rows.setdefault(name, []).append(adapt(options))
            if not arguments.no_neighbour:
                with busy_neighbour():
                    rows.setdefault("one network, busy neighbour", []).append(adapt([]))
        parts = {name: adapt(options, timed=True) for name, options in variants.items()}
    unit = median(row["cpu"] for row in rows["loop"])
    result = {
        "loop": {"cpu": unit, "wall": median(row["wall"] for row in rows["loop"])},
        "ratios": {
            name: {
                "cpu": median(a["cpu"] / b["cpu"] for a, b in zip(found, rows["loop"], strict=True)),
                "wall": median(a["wall"] / b["wall"] for a, b in zip(found, rows["loop"], strict=True)),
            }
            for name, found in rows.items()
            if name != "loop"
        },
        "first step": {name: found["first step"] for name, found in parts.items()},
        "parts": {name: {k: v / unit for k, v in found["parts"].items()} for name, found in parts.items()},
    }
    if not arguments.no_neighbour:
        pairs = zip(rows["one network, busy neighbour"], rows["one network"], strict=True)
        result["busy by alone"] = median(a["cpu"] / b["cpu"] for a, b in pairs)
    if arguments.json:
        print(json.dumps(result))
        return
    show(result)


def show(result: dict[str, Any]) -> None:
    """Print the result as tables."""
    print(f"the loop by hand: {result['loop']['cpu']:.1f} s of CPU, {result['loop']['wall']:.1f} s of wall time = 1\n")
    print(f"{'whole command':32}{'CPU':>8}{'wall':>8}")
    for name, row in result["ratios"].items():
        print(f"{name:32}{row['cpu']:8.2f}{row['wall']:8.2f}")
    if "busy by alone" in result:
        print(f"{'beside a neighbour / alone':32}{result['busy by alone']:8.2f}")
    for name, parts in result["parts"].items():
        print(f"\nwhere the CPU time of {name} goes (first step done after {result['first step'][name]:.2f} s of CPU)")
        for part, share in sorted(parts.items(), key=lambda item: -item[1]):
            print(f"  {part:30}{share:8.2f}")


if __name__ == "__main__":
    main()
