"""The demo's runs, two at a time, each in a process with one thread."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.synchronize import Event
from typing import TYPE_CHECKING, Any

from paretoda.report.facts import RunFacts

if TYPE_CHECKING:
    from paretoda.gradients import Report
    from paretoda.job.predictor import Predictor

STEPS = 100
WAYS: dict[str, dict[str, str]] = {
    "source-only": {"method": "source-only"},
    "DANN": {"method": "dann+none", "scheme": "linear"},
    "DANN + TCM, plain sum": {"method": "dann+tcm", "scheme": "linear"},
    "DANN + TCM, ParetoDA": {"method": "dann+tcm", "scheme": "paretoda"},
}
"""What is compared: all else is the same."""

_EXAMPLE = "DANN + TCM, ParetoDA"
# Chosen by cost, three minutes on two slow cores for all runs: the handwritten digits have 8x8 pixels anyway.
_SETTINGS: dict[str, Any] = {"backbone": "cnn", "image_size": 8, "batch_size": 32, "reference": False}
_MOST_WORKERS = 4


@dataclass(frozen=True)
class DemoRun:
    """What one run measured.

    Args:
        way: a key of `WAYS`.
        seed: of the run.
        chosen: after how many steps the label-free choice was taken.
        oracle_chosen: target accuracy of the label-free choice, 0..1.
        oracle_last: target accuracy after the last step, 0..1.
        facts: for the page; only of one run.
    """

    way: str
    seed: int
    chosen: int
    oracle_chosen: float
    oracle_last: float
    facts: RunFacts | None = None


def take_runs(seeds: int, steps: int, progress: Callable[[int, int], None]) -> list[DemoRun]:
    """All runs, in the order of `WAYS` and seeds."""
    context = get_context("spawn")
    taken, stop = context.Value("q", 0), context.Event()
    jobs = [(way, seed, steps) for way in WAYS for seed in range(seeds)]
    workers = max(1, min(os.cpu_count() or 1, _MOST_WORKERS, len(jobs)))
    slow_first = sorted(jobs, key=lambda job: -list(WAYS).index(job[0]))
    with ProcessPoolExecutor(workers, context, _begin_worker, (taken, stop)) as pool:
        futures: dict[Future[DemoRun], tuple[str, int, int]] = {pool.submit(_take, *job): job for job in slow_first}
        try:
            _watch(futures, lambda: progress(taken.value, steps * len(jobs)))
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    results = {job: future.result() for future, job in futures.items()}
    return [results[job] for job in jobs]


def _watch(futures: dict[Future[DemoRun], tuple[str, int, int]], tell: Callable[[], None]) -> None:
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_EXCEPTION)
        tell()
        for future in done:
            future.result()


_shared: list[Any] = []


def _begin_worker(taken: Any, stop: Event) -> None:
    import torch  # noqa: PLC0415  (the parent needs none)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent tells
    torch.set_num_threads(1)
    _shared[:] = [taken, stop]


def _count(_taken: int, _report: Report) -> None:
    taken, stop = _shared
    with taken.get_lock():
        taken.value += 1
    parent = parent_process()
    if stop.is_set() or (parent is not None and not parent.is_alive()):
        raise KeyboardInterrupt


def _take(way: str, seed: int, steps: int) -> DemoRun:
    """One run; the target's labels are read after it is over."""
    from paretoda.data import open_samples  # noqa: PLC0415
    from paretoda.data.digits import printed_to_handwritten  # noqa: PLC0415
    from paretoda.job.adapt import Listeners, adapt  # noqa: PLC0415
    from paretoda.job.run import predictions_table, run_facts  # noqa: PLC0415

    source, target = printed_to_handwritten()
    settings = {**_SETTINGS, **WAYS[way], "seed": seed, "steps": steps, "evaluate_every": max(1, steps // 5)}
    run = adapt(source, target, listeners=Listeners(after=[_count]), **settings)
    facts = None
    if way == _EXAMPLE and seed == 0:
        samples = open_samples(target, labelled=False)
        table = predictions_table(run.model, samples, run.model.probabilities(samples))
        facts = run_facts(run, table, "ParetoDA demo: printed digits to handwriting")
    return DemoRun(way, seed, run.chosen, _oracle(run.model, target), _oracle(run.last, target), facts)


def _oracle(model: Predictor, target: Any) -> float:
    import torch  # noqa: PLC0415

    from paretoda.data import open_samples  # noqa: PLC0415
    from paretoda.data.digits import handwriting_labels  # noqa: PLC0415
    from paretoda.evaluation.oracle import oracle_accuracy  # noqa: PLC0415

    scores = torch.from_numpy(model.probabilities(open_samples(target, labelled=False)))
    return oracle_accuracy(scores, torch.from_numpy(handwriting_labels()))
