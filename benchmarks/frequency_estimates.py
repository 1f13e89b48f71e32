"""How near estimated class frequencies come to the true ones on drawn streets; target labels serve this table only.

python benchmarks/frequency_estimates.py --backbone efficientnet-lite0 --steps 150
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from scene_frequencies import shares

from paretoda.bench.loading import open_part
from paretoda.bench.suites import find_suite
from paretoda.data.segmentation import make_scene_pair, open_scenes
from paretoda.objectives.parts.class_prior import LabelShift, frequency_ratios
from paretoda.run.settings import Settings
from paretoda.tasks.segmentation.build import build
from paretoda.tasks.segmentation.inputs import make_pair_settings
from paretoda.tasks.settings import make_settings
from paretoda.tasks.suites import SuiteTask
from paretoda.training.seeding import seed_everything

STRENGTHS = (0.1, 0.2, 1 / 3, 0.5, 1.0)


def trained(task: SuiteTask, settings: Settings) -> LabelShift:
    """What the running means are after a training by AdvEnt and TCM."""
    source, target = (
        open_scenes(open_part(part, None, Path()), labelled=True) for part in (*task.sources, task.target)
    )
    pair = make_scene_pair(source, target.without_labels(), make_pair_settings(settings))
    step = build(settings, pair, torch.device("cpu"))
    for number in range(settings.steps):
        seed_everything(settings.seed, f"step {number}")
        step.advance(number / settings.steps)
        step(pair.batch(number, guide=False))
    found = next(module for module in step.objectives["target"].modules() if isinstance(module, LabelShift))
    return found.double()


def distances(task: SuiteTask, settings: Settings) -> dict[str, float]:
    """Half the sum of differences to the true frequencies, both times the class weights; 0..1."""
    source, target = shares(task.sources[0], None), shares(task.target, None)
    weights = source.clamp(min=1e-4).rsqrt()
    shift = trained(task, settings)
    total = shift.joint.sum()
    joint, predicted = shift.joint / total, shift.predicted / total
    guesses = {"source": source * weights, "mean prediction": predicted}
    for strength in STRENGTHS:
        guesses[f"strength {strength:.2f}"] = source * weights * frequency_ratios(joint, predicted, strength)
    truth = target * weights / (target * weights).sum()
    return {name: float((guess / guess.sum() - truth).abs().sum() / 2) for name, guess in guesses.items()}


def main() -> None:
    """Print a row for each task, weight of TCM and seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suites", nargs="+", default=["driving", "driving-tilted"])
    parser.add_argument("--backbone", default="auto")
    parser.add_argument("--backbone-weights", default=None)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--weights", type=float, nargs="+", default=[0.0, 0.3], help="of TCM in the sum")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = []
    for name, task in [pair for suite in given.suites for pair in find_suite(suite).tasks.items()]:
        for weight in given.weights:
            for seed in range(given.seeds):
                settings: dict[str, Any] = {
                    "method": "advent+tcm",
                    "scheme": "linear",
                    "loss_weights": [1.0, 1.0, weight],
                }
                settings |= {"options": ["target.prior=estimated"], "steps": given.steps, "seed": seed}
                settings |= {"backbone": given.backbone, "backbone_weights": given.backbone_weights}
                found = distances(task, make_settings({**task.settings, **settings}))
                rows.append({"task": name, "weight": weight, "seed": seed, **found})
                if not given.json:
                    cells = ", ".join(f"{key} {value:.3f}" for key, value in found.items())
                    print(f"{name}, TCM {weight}, seed {seed}: {cells}", flush=True)
    if given.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
