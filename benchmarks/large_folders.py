"""What it costs to open folders of very many files: CPU time, the peak of the memory, and what is kept of it."""

from __future__ import annotations

import gc
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

_WAYS = ("Path objects", "file list", "folder, labelled", "folder, unlabelled", "folder, from the index", "list file")


def start(counts: Sequence[int], scratch_folder: str) -> dict[str, Any]:
    """CPU seconds and memory to open folders of several sizes in several ways."""
    from paretoda.data import open_samples

    found: dict[str, Any] = {}
    for count in counts:
        with tempfile.TemporaryDirectory(dir=scratch_folder) as scratch:
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
    from paretoda.data.open.folders import find_images, open_unlabelled_folder

    if way == "folder, from the index":  # written by the first call
        open_unlabelled_folder(folder, cached=True)
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
        kept = open_unlabelled_folder(folder, cached=True)
    else:
        kept = open_samples(folder, labelled=way == "folder, labelled", index_cache=False)
    seconds, peak = time.process_time() - cpu, _memory("VmHWM") - before
    bulk = _memory("VmRSS") - before if way == "Path objects" else _own(kept)
    return {"files": len(kept), "cpu": seconds, "peak_mb": peak / 2**20, "kept_mb": bulk / 2**20}


def _own(samples: Any) -> int:
    """Bytes of names and labels."""
    names = getattr(samples, "paths", samples)
    labels = getattr(samples, "labels", None)
    return int(len(names.joined) + names._ends.nbytes + (0 if labels is None else labels.values.nbytes))


def _memory(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith(field)).split()[1]) * 1024
