"""Target accuracy on the development tasks, several seeds: every method alone, with TCM summed, and under ParetoDA.

Labels of the target are used for the printed accuracy only ("oracle"); no choice is made on them. Runs are kept in a
file with one JSON line each, so that a restart goes on where it stopped:

    python benchmarks/development.py --out development.jsonl --jobs 2
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import statistics
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Job = dict[str, Any]

METHODS: dict[str, dict[str, Any]] = {
    "source-only": {"method": "source-only"},
    **{name: {"method": name, "target_loss": "none", "scheme": "linear"} for name in ("dann", "cdan-e", "mdd")},
    **{f"{name} + tcm, sum": {"method": name, "scheme": "linear"} for name in ("dann", "cdan-e", "mdd")},
    **{f"{name} + tcm, paretoda": {"method": name, "scheme": "paretoda"} for name in ("dann", "cdan-e", "mdd")},
}

TASKS: dict[str, dict[str, Any]] = {
    "pacs A-C": {"source": "pacs/art_painting-effnetlite0.npz", "target": "pacs/cartoon-effnetlite0.npz"},
    "pacs C-A": {"source": "pacs/cartoon-effnetlite0.npz", "target": "pacs/art_painting-effnetlite0.npz"},
    "surf A-C": {"source": "office-caltech10/amazon-surf.npz", "target": "office-caltech10/caltech10-surf.npz"},
    "surf C-A": {"source": "office-caltech10/caltech10-surf.npz", "target": "office-caltech10/amazon-surf.npz"},
    "jpeg A-W": {
        "source": "amazon",
        "target": "webcam",
        "settings": {"frozen": True, "backbone": "efficientnet-lite0", "image_size": 160},
    },
    "M-U 2000": {
        "source": "digits/mnist-train.npz",
        "target": "digits/usps-train.npz",
        "sizes": (2000, 1800),
        "settings": {"backbone": "lenet", "image_size": 28},
    },
}


def data_folder() -> Path:
    """The real data: $PARETODA_DATA, or shared/data beside the project."""
    return Path(os.environ.get("PARETODA_DATA", Path(__file__).parents[2] / "shared" / "data"))


def inputs(task: dict[str, Any], work: Path) -> tuple[Any, Any, Any]:
    """Source, target and the target's labels (for the table only)."""
    import numpy as np

    folder = data_folder()
    if task["source"].endswith(".npz"):
        source, target = (np.load(folder / task[part]) for part in ("source", "target"))
        n, m = task.get("sizes", (len(source["x"]), len(target["x"])))
        rng = np.random.default_rng(0)
        i, j = rng.permutation(len(source["x"]))[:n], rng.permutation(len(target["x"]))[:m]
        return (source["x"][i], source["y"][i], list(source["classes"])), target["x"][j], target["y"][j]
    images = work / "images"
    if not images.exists():
        with zipfile.ZipFile(folder / "office-caltech10" / "images-160px.zip") as archive:
            archive.extractall(images)
    found = next(path for path in images.rglob(task["source"]) if path.is_dir()).parent
    return found / task["source"], found / task["target"], found / task["target"]


def run(job: Job) -> Job:
    """One run; its accuracy on the whole target, of the chosen model and of the last."""
    import torch

    from paretoda.data import open_samples
    from paretoda.evaluation.oracle import oracle_accuracy
    from paretoda.job.adapt import adapt

    torch.set_num_threads(1)
    task = TASKS[job["task"]]
    settings = {**task.get("settings", {}), **METHODS[job["method"]], "steps": job["steps"], "seed": job["seed"]}
    if settings.get("frozen"):
        settings["backbone_weights"] = str(data_folder() / "weights" / "efficientnet-lite0.safetensors")
    source, target, labels = inputs(task, Path(job["work"]))
    finished = adapt(source, target, reference=False, **settings)
    samples = open_samples(target, labelled=False)
    if isinstance(labels, Path):
        known = open_samples(labels, labelled=True, classes=finished.classes).labels
        assert known is not None
        labels = known.values
    truth = torch.as_tensor(labels)
    found = {
        kind: oracle_accuracy(torch.from_numpy(model.probabilities(samples)), truth)
        for kind, model in (("chosen", finished.model), ("last", finished.last))
    }
    return {**job, "accuracy": found, "scores": finished.scores, "moves": finished.moves, "chosen": finished.chosen}


def table(rows: list[Job], tasks: list[str], kind: str) -> Iterator[str]:
    """A Markdown table: mean and standard deviation over seeds, in per cent."""
    yield f"| {kind} | {' | '.join(tasks)} | mean |"
    yield "|---" * (len(tasks) + 2) + "|"
    for method in METHODS:
        cells, means = [], []
        for task in tasks:
            values = [100 * r["accuracy"][kind] for r in rows if r["task"] == task and r["method"] == method]
            means += [statistics.mean(values)] if values else []
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            cells.append(f"{means[-1]:.1f} ± {spread:.1f}" if values else "")
        average = f"{statistics.mean(means):.1f}" if len(means) == len(tasks) else ""
        yield f"| {method} | {' | '.join(cells)} | {average} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("development.jsonl"))
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    known = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {(r["task"], r["method"], r["seed"], r["steps"]) for r in known}
    work = str(Path(tempfile.gettempdir()) / "paretoda-development")
    grid = itertools.product(range(options.seeds), options.tasks, options.methods)
    jobs = [
        {"task": task, "method": method, "seed": seed, "steps": options.steps, "work": work}
        for seed, task, method in grid
        if (task, method, seed, options.steps) not in done
    ]
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool, options.out.open("a") as file:
        for number, row in enumerate(pool.imap_unordered(run, jobs), start=1):
            known.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(
                f"{number}/{len(jobs)} {row['task']}, {row['method']}, seed {row['seed']}: {row['accuracy']}",
                flush=True,
            )
    rows = [r for r in known if r["steps"] == options.steps and r["seed"] < options.seeds]
    for kind in ("chosen", "last"):
        print("\n".join(table(rows, options.tasks, kind)), end="\n\n")


if __name__ == "__main__":
    main()
