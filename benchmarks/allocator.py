"""What it saves that malloc keeps freed tensors (`paretoda.cli.environment`): CPU time of a step, ratios of one run.

    python benchmarks/allocator.py [--steps 4] [--rounds 3]

Each measurement is a process of its own with one thread: steps of SGD on EfficientNet-Lite0 with random weights, 64
random images of 128 px. The processes take turns, with and without the setting.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from statistics import median

WITHOUT, WITH = "memory is returned", "memory is kept"


def measure(kept: bool, steps: int) -> dict[str, float]:
    """Return the CPU seconds of a step, those that the system took of them, and the peak of the memory in MiB."""
    if kept:
        from paretoda.cli.environment import prepare_environment

        prepare_environment()
    import torch

    from paretoda.models.backbones import make_backbone

    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = make_backbone("efficientnet-lite0", (3, 128, 128), "none")
    images = torch.randn(64, 3, 128, 128)
    optimiser = torch.optim.SGD(network.parameters(), lr=1e-3)

    def step() -> None:
        optimiser.zero_grad()
        network(images).square().mean().backward()
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
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", choices=[WITHOUT, WITH], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one == WITH, given.steps)))
        return
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    found: dict[str, list[dict[str, float]]] = {WITHOUT: [], WITH: []}
    for _ in range(given.rounds):
        for name, rounds in found.items():
            command = [sys.executable, __file__, "--one", name, "--steps", str(given.steps)]
            answer = subprocess.run(command, capture_output=True, text=True, check=True, env=clean)
            rounds.append(json.loads(answer.stdout))
    base = median(row["cpu"] for row in found[WITHOUT])
    print("| malloc | CPU time | of it in the system | peak of the memory |\n|---|---:|---:|---:|")
    for name, rounds in found.items():
        cpu, system, peak = (median(row[key] for row in rounds) for key in ("cpu", "system", "peak"))
        print(f"| {name} | {cpu / base:.2f} | {system / cpu:.0%} | {peak:.0f} MiB |")


if __name__ == "__main__":
    main()
