"""How far confidences on the target are from the truth, before and after calibration; labels serve this table only.

python benchmarks/calibration.py --data /work/shared/data --steps 100 --seeds 3
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretoda.api import adapt
from paretoda.data import open_samples
from paretoda.evaluation.calibration import fit_temperature
from paretoda.evaluation.metrics import accuracy, expected_calibration_error, selective
from paretoda.evaluation.validators.dev import DEV, truncate_weights
from paretoda.tasks.classification.inputs import open_inputs
from paretoda.training.snapshot import take_snapshot

CPU = torch.device("cpu")
TASKS = {
    "Office-Caltech SURF C→A": ("office-caltech10/caltech10-surf", "office-caltech10/amazon-surf"),
    "Office-Caltech deep A→W": ("office-caltech10/amazon-effnetlite0", "office-caltech10/webcam-effnetlite0"),
    "PACS cartoon→art": ("pacs/cartoon-effnetlite0", "pacs/art_painting-effnetlite0"),
}
METHODS: dict[str, dict[str, Any]] = {"default": {}, "source-only": {"method": "source-only"}}
COLUMNS = ("accuracy", "ECE as is", "ECE calibrated", "ECE weighted", "ECE oracle", "T", "answered", "right of these")


def measured(source: str, target: str, seed: int, steps: int, method: dict[str, Any]) -> list[float]:
    """The numbers of one run, in the order of `COLUMNS`; 'answered': calibrated confidence of 0.8 or more."""
    run = adapt(source, target, seed=seed, steps=steps, reference=False, device="cpu", **method)
    inputs = open_inputs(run.settings, source, target, CPU)
    snapshot = take_snapshot(inputs.pair, run.model.model, CPU)
    held_out, weights = snapshot.held_out_source, torch.from_numpy(truncate_weights(DEV().weights(snapshot)))
    samples, labels = open_samples(target, labelled=False), torch.from_numpy(np.load(target)["y"])
    logits = torch.from_numpy(run.model.probabilities(samples)).double().clamp(min=1e-300).log()
    own = run.model.temperature or 1.0
    heats = (1.0, own, fit_temperature(held_out.logits, held_out.labels, weights), fit_temperature(logits, labels))
    errors = [expected_calibration_error(logits / heat, labels) for heat in heats]
    answers = selective((logits / own).softmax(1), labels, 0.8)
    kept = [answers["coverage"] or 0.0, answers["selective_accuracy"] or float("nan")]
    return [accuracy(logits.argmax(1), labels), *errors, own, *kept]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    print(f"| task | method | {' | '.join(COLUMNS)} |\n|---|---|{'---:|' * len(COLUMNS)}", flush=True)
    for task, names in TASKS.items():
        source, target = (str(given.data / f"{name}.npz") for name in names)
        for name, method in METHODS.items():
            rows = [measured(source, target, seed, given.steps, method) for seed in range(given.seeds)]
            cells = " | ".join(f"{value:.3f}" for value in np.mean(rows, axis=0))
            print(f"| {task} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
