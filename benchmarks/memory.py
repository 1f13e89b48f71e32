"""The peak of a process's memory above where it stood: each way of taking a step in a child of its own."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
from pathlib import Path

from networks import Network, Setting
from steps import VARIANTS

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")

SIZE, BATCH = 64, 2
"""Small images and batches, so that gradients and not activations make the peak."""


def peak(variant: str, network: Network) -> int:
    """Bytes at the peak of a few steps of the variant, above those before them, in a fresh process."""
    # Blocks above 64 KiB go back to the system when freed, so that the resident size follows what is in use.
    sizes = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_MAX_": "1000000"}
    command = [sys.executable, __file__, variant, network]
    done = subprocess.run(command, env=os.environ | sizes, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring the memory of {variant!r} failed:\n{done.stderr}")
    return int(done.stdout)


def _resident(field: str) -> int:
    """A line of /proc/self/status in bytes."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def _own_peak(variant: str, network: Network) -> int:
    setting = Setting(network, SIZE, BATCH)
    chosen = VARIANTS[variant]
    step = chosen.make(setting)

    def steps(count: int) -> None:
        for _ in range(count):
            setting.optimiser.zero_grad()
            step()
            setting.optimiser.step()
        setting.optimiser.zero_grad()

    steps(chosen.rounds)  # imports, momentum buffers, scratch memory of the convolutions
    gc.collect()
    if not _STATUS.exists():  # not Linux: the highest mark since the start, which the first steps have set already
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        steps(2 * chosen.rounds)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    before = _resident("VmRSS")
    _CLEAR.write_text("5")  # the mark starts anew; ru_maxrss cannot, and inherits the parent's
    steps(2 * chosen.rounds)
    return _resident("VmHWM") - before


if __name__ == "__main__":
    print(_own_peak(sys.argv[1], sys.argv[2]))  # type: ignore[arg-type]
