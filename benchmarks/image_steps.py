"""What makes training on images faster on a CPU: ratios of CPU time of a step, all ways in one run.

    python benchmarks/image_steps.py [--network efficientnet-lite0] [--side 128] [--batch 64] [--steps 4] [--rounds 3]

Memory of freed tensors that malloc keeps (`paretoda.cli.environment`), and kernels with their channels last
(`paretoda.models.memory.put_channels_last`). Each measurement is a process of its own with one thread: steps of SGD on
a network with random weights and random images. The ways take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from statistics import median

WAYS = {"neither": (False, False), "memory kept": (True, False), "channels last": (False, True), "both": (True, True)}
"""Name -> whether memory is kept, and whether channels are last; "both" is what `paretoda adapt` does."""


def measure(way: str, network: str, side: int, batch: int, steps: int) -> dict[str, float]:
    """Return the CPU seconds of a step, those that the system took of them, and the peak of the memory in MiB."""
    kept, last = WAYS[way]
    if kept:
        from paretoda.cli.environment import prepare_environment

        prepare_environment()
    import torch

    from paretoda.models.backbones import find_backbone, make_backbone
    from paretoda.models.memory import put_channels_last

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = make_backbone(network, (3, side, side), "none" if find_backbone(network).photos else None)
    if last:
        put_channels_last(model)
    images = torch.randn(batch, 3, side, side)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimiser.zero_grad()
        model(images).square().mean().backward()
        optimiser.step()

    step()
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(steps):
        step()
    after = resource.getrusage(resource.RUSAGE_SELF)
    system = (after.ru_stime - before.ru_stime) / steps
    user = (after.ru_utime - before.ru_utime) / steps
    return {"cpu": user + system, "system": system, "peak": after.ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="efficientnet-lite0")
    parser.add_argument("--side", type=int, default=128)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one, given.network, given.side, given.batch, given.steps)))
        return
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(given.rounds):
        for way, rounds in found.items():
            command = [sys.executable, __file__, *sys.argv[1:], "--one", way]
            answer = subprocess.run(command, capture_output=True, text=True, check=True, env=clean)
            rounds.append(json.loads(answer.stdout))
    base = median(row["cpu"] for row in found["neither"])
    print("| | CPU time | of it in the system | peak of the memory |\n|---|---:|---:|---:|")
    for way, rounds in found.items():
        cpu, system, peak = (median(row[key] for row in rounds) for key in ("cpu", "system", "peak"))
        print(f"| {way} | {cpu / base:.2f} | {system / cpu:.0%} | {peak:.0f} MiB |")


if __name__ == "__main__":
    main()
