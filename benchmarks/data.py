"""How fast images are read, against bare decoding, and what a large folder costs at the start.

    python benchmarks/data.py rate [--data FOLDER] [--images 768] [--size 140] [--rounds 5] [--json]
    python benchmarks/data.py start [--counts 10000 100000 1000000] [--scratch /dev/shm] [--json]

`rate` reads JPEGs of Office-Caltech (below --data or $PARETODA_DATA): the bare rate is a loop of Pillow's decode and
resize. All ways take turns; a ratio is the median over the rounds of way / bare loop in the same round. `start` makes
folders of so many links to one JPEG, 1,000 a class, opens each in processes of their own, and removes them.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from large_folders import start
from PIL import Image
from torch.utils.data import DataLoader, Dataset

_ARCHIVE = "office-caltech10/images-160px.zip"


def bare(paths: Sequence[Path], side: int) -> None:
    """Decode and resize, and nothing else."""
    for path in paths:
        with Image.open(path) as image:
            np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR))


def _in_processes(paths: list[Path], side: int, count: int) -> None:
    with get_context("fork").Pool(count) as pool:
        pool.starmap(bare, [(paths[k::count], side) for k in range(count)])


class _Batches(Dataset[dict[str, Any]]):
    """Batches by the number of their step, for processes."""

    def __init__(self, batch: Callable[[int], Any], steps: int) -> None:
        self.batch, self.steps = batch, steps

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, step: int) -> dict[str, Any]:
        return dict(vars(self.batch(step)))


def _loaded(batch: Callable[[int], Any], numbers: Sequence[int], workers: int) -> Iterable[Any]:
    return DataLoader(_Batches(batch, len(numbers)), batch_size=None, num_workers=workers)


def _taken(read: Callable[..., Iterable[Any]], *arguments: object) -> None:
    for _ in read(*arguments):
        pass


def _ways(folder: Path, images: int, size: int) -> tuple[dict[str, Callable[[], object]], int]:
    """Every way to read so many images, and how many they really are."""
    from paretoda.data import PairSettings, make_pair, rows
    from paretoda.data.prefetching import Reading, prefetch

    rows._MEMORY = 0  # nothing is kept: every image is decoded every time
    settings = PairSettings(batch_size=32, image_size=size, augment="standard", reading=Reading(0))
    pair = make_pair(folder / "amazon", folder / "caltech10", settings)
    target = pair.target.samples
    images = min(images, len(target))
    paths = [target.paths[k] for k in range(images)]  # type: ignore[attr-defined]
    places = [np.arange(images)[start : start + 32] for start in range(0, images, 32)]
    steps = images // 96
    side = round(size * 8 / 7)

    ways: dict[str, Callable[[], object]] = {
        "bare loop": lambda: bare(paths, side),
        "bare, 2 processes": lambda: _in_processes(paths, side, 2),
    }
    for workers in (0, 1, 2):
        ways[f"evaluation, {workers} workers"] = partial(_taken, prefetch, pair.target.evaluate, places, workers)
    for workers in (0, 1, 2):
        ways[f"training, {workers} workers"] = partial(_taken, prefetch, pair.batch, range(steps), workers)
    for workers in (1, 2):
        ways[f"training, {workers} processes of DataLoader"] = partial(
            _taken, _loaded, pair.batch, range(steps), workers
        )
    return ways, images


def rate(arguments: argparse.Namespace) -> dict[str, Any]:
    """Ratios of images a second to the bare loop's, in wall time and in CPU time of all threads."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        with zipfile.ZipFile(Path(arguments.data) / _ARCHIVE) as archive:
            archive.extractall(scratch)
        ways, images = _ways(Path(scratch), arguments.images, arguments.size)
        seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for number in range(-1, arguments.rounds):  # round -1 warms up
            for name, work in ways.items():
                wall, cpu = time.perf_counter(), time.process_time()
                work()
                if number >= 0:
                    seconds[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    found = {}
    for name, times in seconds.items():
        walls = [base[0] / mine[0] for base, mine in zip(seconds["bare loop"], times, strict=True)]
        cpus = [base[1] / mine[1] for base, mine in zip(seconds["bare loop"], times, strict=True)]
        rest = {"cpu": None if "processes" in name else median(cpus)}
        found[name] = {"wall": median(walls), "low": min(walls), "high": max(walls), **rest}
    best = min(wall for wall, _ in seconds["bare loop"])
    return {"images": images, "size": arguments.size, "bare_per_second": images / best, "ratios": found}


def _show(found: dict[str, Any]) -> None:
    if "ratios" in found:
        print(f"{found['images']} images to {found['size']} px; the bare loop made {found['bare_per_second']:.0f}/s")
        for name, row in found["ratios"].items():
            cpu = "" if row["cpu"] is None else f"   per CPU second {row['cpu']:.2f}"
            print(f"{name:38}{row['wall']:6.2f}x ({row['low']:.2f}-{row['high']:.2f}){cpu}")
        return
    for count, ways in found["counts"].items():
        print(f"\n{int(count):,} files")
        for way, row in ways.items():
            print(f"{way:26}{row['cpu']:8.2f} s CPU   peak {row['peak_mb']:7.1f} MB   kept {row['kept_mb']:7.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["rate", "start"])
    parser.add_argument("--data", default=os.environ.get("PARETODA_DATA", "../shared/data"))
    parser.add_argument("--images", type=int, default=768)
    parser.add_argument("--size", type=int, default=140)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--counts", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--scratch", default="/dev/shm", help="for the folders; a million links need a million inodes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    found = rate(arguments) if arguments.what == "rate" else start(arguments.counts, arguments.scratch)
    print(json.dumps(found)) if arguments.json else _show(found)


if __name__ == "__main__":
    main()
