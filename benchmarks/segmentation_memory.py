"""Memory of a segmentation step above the plain sum's, with the paper's DeepLab-v2 on ResNet-101 and tiny images.

Each way of taking a step is measured in a process of its own (see memory.py); the goal is m + 1 floats a shared
parameter.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import torch
from memory import _CLEAR, _resident

from paretoda.data.drawn.streets import DRIVING_CLASSES, draw_driving_scenes
from paretoda.run.build import build_step
from paretoda.tasks import find_task
from paretoda.tasks.segmentation.inputs import open_inputs
from paretoda.tasks.settings import make_settings

WAYS = {
    "plain sum": {"scheme": "linear"},
    "paretoda, exact": {"scheme": "paretoda", "guide": "tcm"},
    "paretoda, last layer votes": {"scheme": "paretoda", "guide": "tcm", "voting": "last"},
}
_SIZES = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_MAX_": "1000000"}


def own_peak(way: str) -> tuple[int, int]:
    """Bytes at the peak of some steps above those before them, and the number of shared parameters."""
    torch.set_num_threads(1)
    x, y = draw_driving_scenes(24, seed=0, gap=1.0, size=(64, 96))
    settings = make_settings(
        {"task": "segmentation", "backbone": "deeplab-resnet101", "batch_size": 2, "levels": 2, **WAYS[way]}
    )
    pair = open_inputs(settings, (x, y, list(DRIVING_CLASSES)), x).pair
    step = build_step(find_task(settings.task), settings, pair, torch.device("cpu"))
    for index in range(2):
        step(pair.batch(index, guide=step.wants_guide))
    step.optimiser.zero_grad(set_to_none=True)
    gc.collect()
    before = _resident("VmRSS")
    _CLEAR.write_text("5")
    for index in range(2, 5):
        step(pair.batch(index, guide=step.wants_guide))
    shared = sum(parameter.numel() for parameter in step.model.encoder.parameters() if parameter.requires_grad)
    return _resident("VmHWM") - before, shared


def main() -> None:
    """Measure every way and print a table."""
    peaks = {}
    for way in WAYS:
        command = [sys.executable, __file__, way]
        done = subprocess.run(command, env=os.environ | _SIZES, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{way}: {done.stderr}")
        peaks[way], shared = (int(number) for number in done.stdout.split())
    print(f"{shared:,} shared parameters, 3 objectives and a guide\n")
    print("| step | floats above the plain sum, per shared parameter |\n| --- | ---: |")
    for way, bytes_ in peaks.items():
        print(f"| {way} | {(bytes_ - peaks['plain sum']) / 4 / shared:.2f} |")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*own_peak(sys.argv[1]))
    else:
        main()
