"""How the time and the memory of a step grow with parameters d, objectives m, classes K and the batch.

    python benchmarks/curves.py [--rounds 7] [--out docs/performance] [--axes d m K batch]

Two linear layers on feature vectors; cross-entropy, DANN, TCM with its K class-wise discriminators, then further
target losses; a guide on held-out samples. CPU time of one thread, so that other load matters little. Time is in units
of the plain sum's step at the middle point, memory (above where the process stood before the steps) in floats per
shared parameter. Writes OUT.csv and OUT.svg.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

from curve_steps import VARIANTS, Point, stepper

AXES: dict[str, tuple[str, Sequence[int]]] = {
    "d": ("inputs", (256, 1024, 4096, 16384)),
    "m": ("objectives", (2, 3, 5, 9)),
    "K": ("classes", (2, 10, 65, 345)),
    "batch": ("batch", (8, 32, 128, 512)),
}
"""Axis -> field of a point, and its values."""
_HEAPS = {
    # Time: freed memory is kept. Memory: it goes back at once, so that the resident size is what is in use.
    "time": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 36), "MALLOC_ARENA_MAX": "1"},
    "memory": {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_MAX_": "1000000"},
}


def timed(point: Point, rounds: int) -> dict[str, float]:
    """CPU seconds of a step of every variant; they take turns."""
    steps = {variant: stepper(point, variant) for variant in VARIANTS}
    seconds: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    for number in range(-1, rounds):  # round -1 warms up
        for variant, step in steps.items():
            start = time.process_time()
            step()
            if number >= 0:
                seconds[variant].append(time.process_time() - start)
    return {variant: median(found) for variant, found in seconds.items()}


def peaks(point: Point, _rounds: int) -> dict[str, float]:
    """Bytes at the peak of a step of every variant above those before it, each in a process of its own."""
    found = {}
    for variant in VARIANTS:
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            step = stepper(point, variant)
            step()
            gc.collect()
            before = _resident("VmRSS")
            Path("/proc/self/clear_refs").write_text("5")
            step()
            step()
            os.write(theirs, str(_resident("VmHWM") - before).encode())
            os._exit(0)
        os.close(theirs)
        os.waitpid(child, 0)
        with os.fdopen(ours) as pipe:
            found[variant] = float(pipe.read())
    return found


def _resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024


def _points(axes: Sequence[str]) -> list[tuple[str, int, Point]]:
    return [(axis, size, replace(Point(), **{AXES[axis][0]: size})) for axis in axes for size in AXES[axis][1]]


def measured(what: str, axes: Sequence[str], rounds: int) -> list[dict[str, float]]:
    """What a process of its own, with the right heap, finds at every point."""
    command = [sys.executable, __file__, "--child", what, "--rounds", str(rounds), "--axes", *axes]
    environment = os.environ | _HEAPS[what] | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: list[dict[str, float]] = json.loads(done.stdout)
    return found


def rows(axes: Sequence[str], rounds: int) -> list[dict[str, Any]]:
    """One row for every point and variant."""
    points = _points(axes)
    seconds, bytes_ = (measured(what, axes, rounds) for what in ("time", "memory"))
    middle = [times["sum"] for (_, _, point), times in zip(points, seconds, strict=False) if point == Point()]
    unit = median([*middle, seconds[-1]["sum"]])  # once more at the end
    table = []
    for (axis, size, point), times, memory in zip(points, seconds, bytes_, strict=False):
        shared = 512 * (point.inputs + 1) + 131_328
        for variant in VARIANTS:
            row = {"axis": axis, "value": shared if axis == "d" else size, "variant": variant, **asdict(point)}
            row |= {"d": shared, "time": round(times[variant] / unit, 3)}
            table.append(row | {"floats_per_d": round(memory[variant] / 4 / shared, 2)})
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("docs/performance"))
    parser.add_argument("--axes", nargs="+", choices=list(AXES), default=list(AXES))
    parser.add_argument("--child", choices=["time", "memory"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        work = timed if arguments.child == "time" else peaks
        points = [point for _, _, point in _points(arguments.axes)]
        stepper(Point(), "exact")  # imports everything before processes are forked
        print(json.dumps([work(point, arguments.rounds) for point in [*points, Point()]]))
        return
    from curves_picture import draw

    table = rows(arguments.axes, arguments.rounds)
    with arguments.out.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    draw(table, arguments.out.with_suffix(".svg"))
    for row in table:
        print(f"{row['axis']:>6} {row['value']:>10,} {row['variant']:>6} {row['time']:8.2f} {row['floats_per_d']:8.2f}")


if __name__ == "__main__":
    main()
