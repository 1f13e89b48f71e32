"""How fast images are read, against bare decoding, and what a large folder costs at the start.

    python benchmarks/data.py rate [--data FOLDER] [--images 768] [--size 140] [--rounds 5] [--json]
    python benchmarks/data.py start [--counts 10000 100000 1000000] [--scratch /dev/shm] [--json]

`rate` reads JPEGs of Office-Caltech (below --data or $PARETODA_DATA): the bare rate is a loop of Pillow's decode and
resize. All ways take turns; a ratio is the median over the rounds of way / bare loop in the same round. `start` makes
folders of so many links to one JPEG, 1,000 a class, opens each in processes of their own, and removes them.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from PIL import Image

_ARCHIVE = "office-caltech10/images-160px.zip"
_WAYS = ("Path objects", "file list", "folder, labelled", "folder, unlabelled", "folder, from the index", "list file")


def bare(paths: Sequence[Path], side: int) -> None:
    """Decode and resize, and nothing else."""
    for path in paths:
        with Image.open(path) as image:
            np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR))


def _in_processes(paths: list[Path], side: int, count: int) -> None:
    with get_context("fork").Pool(count) as pool:
        pool.starmap(bare, [(paths[k::count], side) for k in range(count)])


def _ways(folder: Path, images: int, size: int) -> tuple[dict[str, Callable[[], object]], int]:
    """Every way to read so many images, and how many they really are."""
    from paretoda.data import PairSettings, make_pair, rows
    from paretoda.data.ahead import in_order
    from paretoda.data.reading import Reading

    rows._MEMORY = 0  # nothing is kept: every image is decoded every time
    settings = PairSettings(batch_size=32, image_size=size, augment="standard", reading=Reading(0))
    pair = make_pair(folder / "amazon", folder / "caltech10", settings)
    target = pair.target.samples
    images = min(images, len(target))
    paths = [target.paths[k] for k in range(images)]  # type: ignore[attr-defined]
    places = [np.arange(images)[start : start + 32] for start in range(0, images, 32)]
    steps = images // 96
    side = round(size * 8 / 7)

    def evaluated(workers: int) -> None:
        for _ in in_order(pair.target.evaluate, places, workers):
            pass

    def trained(workers: int) -> None:
        for _ in in_order(pair.batch, range(steps), workers):
            pass

    ways: dict[str, Callable[[], object]] = {
        "bare loop": lambda: bare(paths, side),
        "bare, 2 processes": lambda: _in_processes(paths, side, 2),
    }
    for workers in (0, 1, 2):
        ways[f"evaluation, {workers} workers"] = lambda workers=workers: evaluated(workers)  # type: ignore[misc]
    for workers in (0, 1, 2):
        ways[f"training, {workers} workers"] = lambda workers=workers: trained(workers)  # type: ignore[misc]
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


def start(arguments: argparse.Namespace) -> dict[str, Any]:
    """CPU seconds and memory to open folders of several sizes in several ways."""
    from paretoda.data import open_samples

    found: dict[str, Any] = {}
    for count in arguments.counts:
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
            folder = _made(Path(scratch), count)
            open_samples(folder.parent / "seed.jpg", labelled=False)  # what is imported late
            os.environ["PARETODA_CACHE"] = f"{scratch}/cache"
            found[str(count)] = {way: _in_a_child(way, folder) for way in _WAYS}
    return {"counts": found}


def _in_a_child(way: str, folder: Path) -> dict[str, float]:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(theirs, json.dumps(opened(way, folder)).encode())
        os._exit(0)
    os.close(theirs)
    os.waitpid(child, 0)
    with os.fdopen(ours) as pipe:
        found: dict[str, float] = json.loads(pipe.read())
    return found


def _made(scratch: Path, count: int) -> Path:
    """A folder with classes of 1,000 links each, an hour old, and a list file beside it."""
    folder, seed = scratch / "images", scratch / "seed.jpg"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(seed)
    lines = []
    for cls in range(count // 1000):
        place = folder / f"class_{cls:04d}"
        place.mkdir(parents=True)
        for k in range(1000):
            name = f"image_{1000 * cls + k:07d}.jpg"
            os.link(seed, place / name)
            lines.append(f"images/class_{cls:04d}/{name} {cls}\n")
        os.utime(place, (time.time() - 3600,) * 2)
    os.utime(folder, (time.time() - 3600,) * 2)
    (scratch / "list.txt").write_text("".join(lines))
    return folder


def opened(way: str, folder: Path) -> dict[str, float]:
    """What one way of opening the folder costs this process."""
    from paretoda.data import open_samples
    from paretoda.data.folders import find_images, unlabelled_folder

    if way == "folder, from the index":  # written by the first call
        unlabelled_folder(folder, cached=True)
        gc.collect()
    before, cpu = _memory("VmRSS"), time.process_time()
    Path("/proc/self/clear_refs").write_text("5")
    kept: Any
    if way == "Path objects":
        kept = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
    elif way == "file list":
        kept = find_images(folder)[0]
    elif way == "list file":
        kept = open_samples(folder.parent / "list.txt", labelled=True)
    elif way == "folder, from the index":
        kept = unlabelled_folder(folder, cached=True)
    else:
        kept = open_samples(folder, labelled=way == "folder, labelled", index_cache=False)
    seconds, peak = time.process_time() - cpu, _memory("VmHWM") - before
    bulk = sys.getsizeof(kept) + sum(map(sys.getsizeof, kept)) if way == "Path objects" else _own(kept)
    return {"files": len(kept), "cpu": seconds, "peak_mb": peak / 2**20, "kept_mb": bulk / 2**20}


def _own(samples: Any) -> int:
    """Bytes of names and labels."""
    names = getattr(samples, "paths", samples)
    labels = getattr(samples, "labels", None)
    return len(names.joined) + names._ends.nbytes + (0 if labels is None else labels.values.nbytes)


def _memory(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith(field)).split()[1]) * 1024


def _show(found: dict[str, Any]) -> None:
    if "ratios" in found:
        print(
            f"{found['images']} images to {found['size']} px; the bare loop made {found['bare_per_second']:.0f}/s at best"
        )
        for name, row in found["ratios"].items():
            cpu = "" if row["cpu"] is None else f"   per CPU second {row['cpu']:.2f}"
            print(f"{name:26}{row['wall']:6.2f}x ({row['low']:.2f}-{row['high']:.2f}){cpu}")
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
    found = rate(arguments) if arguments.what == "rate" else start(arguments)
    print(json.dumps(found)) if arguments.json else _show(found)


if __name__ == "__main__":
    main()
