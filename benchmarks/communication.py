"""What a step would send and wait for on many GPUs: arithmetic on assumptions, nothing is measured.

    python benchmarks/communication.py [--processes 1024] [--images 32] [--parameters D] [--last D] [--features 256]
                                       [--objectives 3] [--classes 65] [--json]

Volumes are bytes that one process sends in a step; a ring of n passes on (n - 1) / n of what it gathers or scatters,
and twice that of what it reduces for all. The numbers of machines and networks are options, and printed.
"""

from __future__ import annotations

import argparse
import json
import math

_FLOAT = 4
_PASSES = {"plain DANN": 6, "exact": 13, "exact, sharded": 13, "last": 7}
"""Forward passes of one domain's images that a step costs (docs/decisions/0003)."""


def volumes(n: int, images: int, d: int, last: int, features: int, m: int) -> dict[str, dict[str, float]]:
    """Bytes that each process sends: features of three domains, then gradients, by way of taking the step.

    The plain sum is taken as DDP takes it: every process with its own samples alone.
    """
    passed = (n - 1) / n
    gathered = 3 * n * images * features * _FLOAT * passed  # source, target, held out; labels and indices are nothing
    return {
        "plain DANN": {"features": 0.0, "gradients": 2 * d * _FLOAT * passed},
        "exact": {"features": gathered, "gradients": 2 * (m + 1) * d * _FLOAT * passed},
        "exact, sharded": {"features": gathered, "gradients": (m + 2) * d * _FLOAT * passed},
        "last": {"features": gathered, "gradients": 2 * (d + (m + 1) * last) * _FLOAT * passed},
    }


def exposed(way: str, m: int) -> float:
    """The share of the gradients' bytes that no computation hides: a row can travel while the next is computed."""
    if way == "exact":
        return 1 / (m + 1)  # the last row
    if way == "exact, sharded":
        return 2 / (m + 2)  # the last row, and the direction on its way back
    return 0.3  # as DDP's buckets: the first layers come last


def head_flops(features: int, classes: int, width: int, hidden: int) -> float:
    """Of the heads for one sample of each domain, forward and backward: classifier, DANN, TCM's discriminators."""
    multiplications = 2 * features * classes + 2 * features * hidden + 2 * classes * features * width
    return 3 * 2 * multiplications


def plan(a: argparse.Namespace) -> dict[str, object]:
    """Seconds of every part of a step, and the efficiency against one process alone."""
    once = a.images / (3 * a.rate)  # seconds of one forward pass: training at `rate` takes three
    heads = head_flops(a.features, a.classes, 128, 1024)
    flops = 3 * a.rate * a.forward  # what a GPU does in a second at that rate
    straggling = 1 + a.jitter * math.sqrt(2 * math.log(a.processes))
    found = {}
    for way, sent in volumes(a.processes, a.images, a.parameters, a.last, a.features, a.objectives).items():
        compute = _PASSES[way] * once
        redundant = (1 if way == "plain DANN" else a.processes) * a.images * heads / flops
        wire = {part: size / a.bandwidth / 1e9 for part, size in sent.items()}
        seen = wire["gradients"] * exposed(way, a.objectives) + wire["features"]
        found[way] = {
            **{f"{part}_mb": size / 1e6 for part, size in sent.items()},
            "compute_ms": 1e3 * compute,
            "heads_ms": 1e3 * redundant,
            "wire_ms": 1e3 * sum(wire.values()),
            "exposed_ms": 1e3 * seen,
            "efficiency": compute / ((compute + redundant + seen) * straggling),
            "efficiency_without_overlap": compute / ((compute + redundant + sum(wire.values())) * straggling),
        }
    tenth = 0.1 * _PASSES["exact"] * a.forward / heads
    return {"assumed": vars(a), "ways": found, "heads_cost_a_tenth_at": tenth}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=1024)
    parser.add_argument("--images", type=int, default=32, help="of each domain, a process")
    parser.add_argument("--parameters", type=int, default=43_025_216, help="shared: ResNet-101 and a bottleneck to 256")
    parser.add_argument("--last", type=int, default=524_544, help="of the last shared layer")
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--objectives", type=int, default=3)
    parser.add_argument("--classes", type=int, default=65)
    parser.add_argument("--bandwidth", type=float, default=20.0, help="GB/s that a GPU sends (25 GB/s links at 80 %%)")
    parser.add_argument("--rate", type=float, default=1300.0, help="images a second in plain training, half precision")
    parser.add_argument("--forward", type=float, default=15.6e9, help="operations of one image's forward pass")
    parser.add_argument("--jitter", type=float, default=0.02, help="deviation of a process's step time, as a share")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    found = plan(parser.parse_args())
    if found["assumed"].pop("json"):  # type: ignore[attr-defined]
        print(json.dumps(found))
        return
    print(", ".join(f"{name} {value:g}" for name, value in found["assumed"].items()))  # type: ignore[attr-defined]
    for way, row in found["ways"].items():  # type: ignore[attr-defined]
        print(f"{way:16}" + "  ".join(f"{name} {value:.4g}" for name, value in row.items()))
    print(f"redundant heads cost a tenth of an exact step at {found['heads_cost_a_tenth_at']:.0f} processes")


if __name__ == "__main__":
    main()
