"""What a line of the store says of a trained run, whatever its task."""

from __future__ import annotations

import numpy as np

from paretoda.bench.store import Row
from paretoda.job.result import RunResult


def run_line(run: RunResult) -> Row:
    """How the model was chosen, by which scores, and what each loss was multiplied by on average."""
    names = run.history[-1]["weights"]
    return {
        "selection": run.settings.select,
        "chosen_step": run.chosen,
        "scores": run.scores,
        "moves": run.moves,
        "weights": {name: float(np.mean([line["weights"][name] for line in run.history])) for name in names},
        "config": run.settings.model_dump(mode="json"),
    }
