"""How frequent the classes are in both domains of the small segmentation suites; target labels serve this table only.

python benchmarks/scene_frequencies.py --data /work/shared/data
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from paretoda.bench.loading import open_part
from paretoda.bench.suites import find_suite
from paretoda.data.segmentation import open_scenes
from paretoda.data.segmentation.pair import class_shares
from paretoda.tasks.suites import Part


def shares(part: Part, data: Path | None) -> torch.Tensor:
    """The share of each class among the labelled pixels."""
    samples = open_scenes(open_part(part, data, Path()), labelled=True)
    maps = (torch.from_numpy(samples.read_labels([place])[0]).long()[None] for place in range(len(samples)))
    return class_shares(maps, len(samples.classes))


def main() -> None:
    """Print both domains' shares, their distance, and the prior that the target's frequencies make for TCM."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=None, help="folder of the suites' files")
    parser.add_argument("--suites", nargs="+", default=["camvid", "camvid-dusk"])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = {}
    for suite in given.suites:
        for name, task in find_suite(suite).tasks.items():
            source, target = shares(task.sources[0], given.data), shares(task.target, given.data)
            prior = target / source.sqrt()
            found[name] = {
                "classes": list(open_scenes(open_part(task.sources[0], given.data, Path()), labelled=True).classes),
                "source": source.tolist(),
                "target": target.tolist(),
                "distance": float((source - target).abs().sum() / 2),
                "target over root of source": (prior / prior.sum()).tolist(),
            }
    if given.json:
        print(json.dumps(found))
        return
    for name, row in found.items():
        print(f"{name}: distance {row['distance']:.3f} of 1")
        columns = [row[key] for key in ("classes", "source", "target", "target over root of source")]
        for label, one, other, taught in zip(*columns, strict=True):
            print(f"  {label:<12} {one:7.4f} {other:7.4f} {taught:7.4f}")


if __name__ == "__main__":
    main()
