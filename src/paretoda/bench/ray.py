"""The runs of a benchmark as tasks of a Ray cluster, written to the same store as those of local processes."""

from __future__ import annotations

import logging
import os
from importlib import import_module
from socket import create_connection
from types import ModuleType
from typing import TYPE_CHECKING, Any

from paretoda.bench.contenders import RunSpec
from paretoda.bench.jobs import Bench, Execution, Tally, make_failed_row
from paretoda.bench.runner import execute_in_worker, execute_or_fail, use_one_thread
from paretoda.bench.store import Row
from paretoda.errors import RunError

if TYPE_CHECKING:
    from paretoda.types import Progress

_RETRIES = 3
_QUIET: dict[str, Any] = {
    "log_to_driver": False,
    "logging_level": logging.ERROR,
    "namespace": "paretoda",
    "ignore_reinit_error": True,
}


def run_on_ray(bench: Bench, address: str, progress: Progress | None = None) -> list[Row]:
    """Make the missing runs on a Ray cluster and return all results.

    Every machine must have paretoda and the data at the same places.

    Args:
        bench: The benchmark.
        address: Address of the cluster; "auto" finds one on this machine, or starts one for the time of the bench.
        progress: Called after every run.

    Raises:
        RunError: If Ray is not installed, or no cluster answers.
    """
    ray = _import_ray()
    with bench.store.lock():
        specs = bench.missing()
        if specs:
            _connect(ray, address)
            try:
                _run_tasks(ray, bench, specs, Tally(specs, progress))
            finally:
                ray.shutdown()
    return bench.rows()


def _run_tasks(ray: ModuleType, bench: Bench, specs: list[RunSpec], tally: Tally) -> None:
    execution = Execution(execute_in_worker, None if bench.data is None else bench.data.resolve(), bench.work.resolve())
    remote = ray.remote(_run_task)
    running = {remote.options(**resources(spec)).remote(execution, spec): spec for spec in specs}
    while running:
        done, _ = ray.wait(list(running), num_returns=1)
        for reference in done:
            spec = running.pop(reference)
            try:
                row = ray.get(reference)
            except ray.exceptions.RayError as error:
                row = make_failed_row(spec, f"its Ray task died {_RETRIES + 1} times: {type(error).__name__}")
            bench.store.add(row)
            tally.finish(spec)


def resources(spec: RunSpec) -> dict[str, Any]:
    """Return what a run occupies: one core, and a GPU if its settings name one."""
    gpu = str(spec.settings.get("device", "auto")).startswith("cuda")
    return {"num_cpus": 1, "num_gpus": int(gpu), "max_retries": _RETRIES}


def _run_task(execution: Execution, spec: RunSpec) -> Row:
    use_one_thread()
    return execute_or_fail(execution, spec)


def _import_ray() -> ModuleType:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        return import_module("ray")
    except ImportError as error:
        raise RunError("--ray needs Ray: pip install 'paretoda[ray]', or use --jobs") from error


def _connect(ray: ModuleType, address: str) -> None:
    if address != "auto":
        _check_address(address)
        ray.init(address=address, **_QUIET)
        return
    try:
        ray.init(address="auto", **_QUIET)
    except ConnectionError:
        ray.init(address="local", include_dashboard=False, **_QUIET)


def _check_address(address: str) -> None:
    """Raise an error if nobody answers at the address; Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise RunError(f"there is no Ray cluster at {address}; `ray start --head` starts one") from error
