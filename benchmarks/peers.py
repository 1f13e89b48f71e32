"""What the same DANN costs in other libraries: CPU time of a step and of the whole job, a hand-written loop = 1.

    python benchmarks/peers.py [--data /work/shared/data] [--steps 500] [--rounds 3] [--only NAME ...] [--json]

The task is PACS art → cartoon (stored features), or any two .npz files with --source and --target. Each library has an
environment of its own below build/peers, which pip makes at the first run, with the torch of this one. What cannot be
installed or does not run is named with its reason. The whole job is a process: it starts, imports, reads the files,
trains, predicts the target and writes the predictions. "paretoda adapt" is our command for the same DANN with all that
it does by default besides: the choice among checkpoints, the source-only reference, the report.

One thread; the jobs take turns, and a ratio is the median over the rounds of job / loop in the same round.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

BENCHMARKS = Path(__file__).parent
ENVIRONMENTS = BENCHMARKS.parent / "build" / "peers"
PACS = ("pacs/art_painting-effnetlite0.npz", "pacs/cartoon-effnetlite0.npz")
LOOP, COMMAND = "hand-written loop", "paretoda adapt"
_WARM_UP = 10
"""Steps of a first run of each job that is not counted: it compiles what it imports and brings files into memory."""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class UnavailableError(Exception):
    """A library that cannot be installed, or whose job does not run; the message has the reason."""


@dataclass(frozen=True)
class Peer:
    """A library with a DANN.

    Args:
        job: File in peer_jobs; nothing: our command.
        packages: What pip installs besides torch; nothing: the job runs in this environment.
        alone: What pip installs without its dependencies.
    """

    job: str = ""
    packages: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()


PEERS = {
    LOOP: Peer("loop.py"),
    "Lightning": Peer("on_lightning.py", ("lightning==2.6.6",)),
    "skada": Peer("on_skada.py", ("skada==0.6.0", "skorch==1.4.0")),
    # torchvision does not load beside a torch for the CPU, and the hooks need none; torchmetrics needs pkg_resources.
    "pytorch-adapt": Peer(
        "on_pytorch_adapt.py",
        ("scikit-learn", "tqdm", "packaging", "setuptools<81"),
        ("pytorch-adapt==0.0.83", "pytorch-metric-learning==1.6.3", "torchmetrics==0.9.3"),
    ),
    "paretoda.adapt": Peer("on_paretoda.py"),
    COMMAND: Peer(),
}


@dataclass(frozen=True)
class Plan:
    """The job that all of them do.

    Args:
        source: Labelled features.
        target: Features, whose labels only measure the predictions.
        steps: Training steps.
    """

    source: Path
    target: Path
    steps: int


@dataclass(frozen=True)
class Measurement:
    """One run of a job.

    Args:
        whole: CPU seconds of the process.
        step: CPU seconds of a step; None where they are not told.
        accuracy: On the target.
    """

    whole: float
    step: float | None
    accuracy: float


def prepare(name: str, peer: Peer) -> str:
    """The Python of a peer's environment, which is made where it is missing."""
    if not peer.packages:
        return sys.executable
    folder = ENVIRONMENTS / name
    python, stamp = str(folder / "bin" / "python"), folder / "installed.json"
    wanted = json.dumps([torch.__version__, peer.packages, peer.alone])
    if not stamp.exists() or stamp.read_text() != wanted:
        say(f"installing {name} into {folder}")
        install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        call([sys.executable, "-m", "venv", "--clear", str(folder)])
        call([*install, f"torch=={torch.__version__.split('+')[0]}", "numpy", *peer.packages])
        if peer.alone:
            call([*install, "--no-deps", *peer.alone])
        stamp.write_text(wanted)
    return python


def call(command: Sequence[str], **environment: str) -> str:
    """The output of a command."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=inherited | environment)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise UnavailableError(lines[-1].strip() if lines else f"exit code {done.returncode}")
    return done.stdout


def measure(name: str, python: str, plan: Plan) -> Measurement:
    """Run a job once."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / ("run" if name == COMMAND else "predictions.npy")
        start = cpu_of_children()
        if name == COMMAND:
            call([python, "-m", "paretoda", *command(plan, out)], **_ONE_THREAD)
            step = None
        else:
            job = [python, str(BENCHMARKS / "peer_jobs" / PEERS[name].job)]
            printed = call([*job, str(plan.source), str(plan.target), str(plan.steps), str(out)], **_ONE_THREAD)
            step = json.loads(printed.splitlines()[-1])["step"]
        return Measurement(cpu_of_children() - start, step, accuracy(out, plan.target))


def command(plan: Plan, out: Path) -> list[str]:
    """Our command for the same DANN."""
    sys.path.insert(0, str(BENCHMARKS / "peer_jobs"))
    from dann import LR

    options = {
        "source": plan.source,
        "target": plan.target,
        "out": out,
        "steps": plan.steps,
        "method": "dann+none",
        "scheme": "linear",
        "lr": LR,
        "schedule": "constant",
        "options": "alignment.warm_up=false",
    }
    return ["adapt", *(text for name, value in options.items() for text in (f"--{name}", str(value)))]


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def accuracy(out: Path, target: Path) -> float:
    """Share of the target's labels that the predictions of a job meet."""
    with np.load(target) as file:
        labels, classes = file["y"], file["classes"].tolist()
    if out.is_dir():
        with (out / "predictions.csv").open(newline="") as file:
            found = [classes.index(row["prediction"]) for row in csv.DictReader(file)]
    else:
        found = np.load(out).tolist()
    return float(np.mean(np.array(found) == labels))


def compare(plan: Plan, names: Sequence[str], rounds: int) -> dict[str, Any]:
    """The ratios of every peer, or why there are none."""
    pythons, reasons = {}, {}
    for name in names:
        try:
            pythons[name] = prepare(name, PEERS[name])
        except UnavailableError as error:
            reasons[name] = f"cannot be installed: {error}"
    found: dict[str, list[Measurement]] = {name: [] for name in pythons}
    for number in range(1 + rounds):
        for name, python in pythons.items():
            if name in reasons:
                continue
            say(f"{name}: round {number} of {rounds}")
            try:
                run = measure(name, python, plan if number else replace(plan, steps=_WARM_UP))
            except UnavailableError as error:
                reasons[name] = f"does not run: {error}"
            else:
                found[name] += [run] if number else []
    loop = found[LOOP]
    peers = {name: summarise(found[name], loop) for name in names if name not in reasons}
    fastest = {"whole": min(run.whole for run in loop), "step": min(run.step or 0.0 for run in loop)}
    return {"torch": torch.__version__, "loop_seconds": fastest, "peers": peers, "unavailable": reasons}


def summarise(runs: Sequence[Measurement], loop: Sequence[Measurement]) -> dict[str, Any]:
    pairs = list(zip(runs, loop, strict=True))
    steps = [own.step / base.step for own, base in pairs if own.step and base.step]
    wholes = [own.whole / base.whole for own, base in pairs]
    return {
        "step": median(steps) if steps else None,
        "whole": median(wholes),
        "spread": [min(wholes), max(wholes)],
        "accuracy": median(run.accuracy for run in runs),
    }


def show(found: dict[str, Any]) -> None:
    loop = found["loop_seconds"]
    print(f"hand-written loop: {1000 * loop['step']:.1f} ms a step, {loop['whole']:.1f} s in all (CPU time)\n")
    print("| | step | whole job | its spread | target accuracy, % |\n|---|---:|---:|---:|---:|")
    for name, row in found["peers"].items():
        step = "" if row["step"] is None else f"{row['step']:.2f}"
        low, high = row["spread"]
        print(f"| {name} | {step} | {row['whole']:.2f} | {low:.2f} to {high:.2f} | {100 * row['accuracy']:.1f} |")
    for name, reason in found["unavailable"].items():
        print(f"\n{name} {reason}")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    shared = os.environ.get("PARETODA_DATA", str(BENCHMARKS.parents[1] / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=Path(shared), help="folder of the PACS features")
    parser.add_argument("--source", type=Path, help="another labelled .npz")
    parser.add_argument("--target", type=Path, help="another target .npz, with labels to measure with")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(PEERS), default=list(PEERS), metavar="NAME")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    source, target = (own or given.data / usual for own, usual in zip((given.source, given.target), PACS, strict=True))
    names = [name for name in PEERS if name in given.only or name == LOOP]
    found = compare(Plan(source, target, given.steps), names, given.rounds)
    if given.json:
        print(json.dumps(found))
    else:
        show(found)


if __name__ == "__main__":
    main()
