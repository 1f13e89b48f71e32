"""Memory and time of a step by the ways to need less of them, beside the plain step: ratios of one run.

Each way is measured in a process of its own (see memory.py). Bytes are the peak of some steps above what stood before
them, so activations and rows of gradients count, and the network itself does not.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import torch
from memory import _CLEAR, _resident

from paretoda.models.memory import compile_encoder
from paretoda.run.build import build_step
from paretoda.tasks import find_task
from paretoda.tasks.classification.inputs import open_inputs
from paretoda.tasks.settings import make_settings

WAYS: dict[str, dict[str, Any]] = {
    "plain sum (`--scheme linear`)": {"scheme": "linear"},
    "exact (the default)": {},
    "`--voting last`": {"voting": "last"},
    "`--accumulate 2`": {"accumulate": 2},
    "`--accumulate 4`": {"accumulate": 4},
    "`--accumulate 8`": {"accumulate": 8},
    "`--voting last --accumulate 4`": {"voting": "last", "accumulate": 4},
    "`--checkpoint-activations`": {"checkpoint_activations": True},
    "`--checkpoint-activations --accumulate 4`": {"checkpoint_activations": True, "accumulate": 4},
    "`--precision bf16`": {"precision": "bf16"},
    "`--precision bf16 --accumulate 4`": {"precision": "bf16", "accumulate": 4},
    "`--channels-last`": {"channels_last": True},
}
COMPILED = "`--compile`"
"""Measured only where it is asked for: it compiles for minutes."""
BASE = "exact (the default)"
_SIZES = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_MAX_": "1000000"}


def own_peak(way: str, backbone: str, size: int, batch: int, repeats: int) -> tuple[int, float]:
    """Bytes at the peak of some steps above those before them, and the median seconds of a step."""
    torch.set_num_threads(1)
    images = np.random.default_rng(0).integers(0, 256, size=(2 * batch + 20, size, size, 3), dtype=np.uint8)
    labels = np.arange(len(images)) % 5
    settings = make_settings(
        {
            "backbone": backbone,
            "batch_size": batch,
            "held_out": 0.4,
            "image_size": size,
            "augment": "none",
            "guide": "tcm",
            "target_loss": "tcm",
            "device": "cpu",
            **WAYS.get(way, {}),
        }
    )
    pair = open_inputs(settings, (images, labels), images, torch.device("cpu")).pair
    step = build_step(find_task(settings.task), settings, pair, torch.device("cpu"))
    if way == COMPILED:
        compile_encoder(step.model.encoder)
    batches = [pair.batch(index, guide=step.wants_guide) for index in range(2)]
    for given in batches:
        step(given)
    step.optimiser.zero_grad(set_to_none=True)
    gc.collect()
    before, seconds = _resident("VmRSS"), []
    _CLEAR.write_text("5")
    for index in range(repeats):
        start = time.process_time()
        step(batches[index % 2])
        seconds.append(time.process_time() - start)
    return _resident("VmHWM") - before, float(np.median(seconds))


def main() -> None:
    """Measure every way and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbone", default="resnet18")
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ways", nargs="*", default=None, help="parts of their names; all if not given")
    parser.add_argument("--compile", action="store_true", help="also measure --compile")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--own", default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    shape = (given.backbone, given.size, given.batch, given.repeats)
    if given.own is not None:
        print(*own_peak(given.own, *shape))
        return
    every = [*WAYS, *([COMPILED] if given.compile else [])]
    chosen = [way for way in every if way == BASE or given.ways is None or any(part in way for part in given.ways)]
    found: dict[str, tuple[float, float]] = {}
    for way in chosen:
        command = [sys.executable, __file__, *sys.argv[1:], "--own", way]
        done = subprocess.run(command, env=os.environ | _SIZES, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{way}: {done.stderr}")
        peak, seconds = done.stdout.split()
        found[way] = (float(peak), float(seconds))
    ratios = {
        way: [round(own / base, 2) for own, base in zip(pair, found[BASE], strict=True)] for way, pair in found.items()
    }
    if given.json:
        print(json.dumps({"base": found[BASE], "ratios": ratios}))
        return
    print(f"{given.backbone}, {given.size} px, batch {given.batch}; exact: {found[BASE][0] / 2**20:.0f} MiB\n")
    print("| step | memory | CPU time |\n|---|--:|--:|")
    for way, (memory, cpu) in ratios.items():
        print(f"| {way} | {memory:.2f} | {cpu:.2f} |")


if __name__ == "__main__":
    main()
