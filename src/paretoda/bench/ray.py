"""The runs of a benchmark as tasks of a Ray cluster, into the same store as local processes."""

from __future__ import annotations

import logging
import os
from importlib import import_module
from socket import create_connection
from types import ModuleType
from typing import Any

from paretoda.bench.contenders import RunSpec
from paretoda.bench.jobs import Bench, Execution, Tally, Tell, failed
from paretoda.bench.runner import execute_in_worker, execute_or_fail, one_thread
from paretoda.bench.store import Row
from paretoda.errors import RunError

_RETRIES = 3
_QUIET: dict[str, Any] = {
    "log_to_driver": False,
    "logging_level": logging.ERROR,
    "namespace": "paretoda",
    "ignore_reinit_error": True,
}


def run_on_ray(bench: Bench, address: str, tell: Tell | None = None) -> list[Row]:
    """Make the missing runs on a Ray cluster; every machine has paretoda and the data at the same places.

    Args:
        bench: what to run.
        address: of the cluster; "auto" finds one on this machine, or starts one for the time of the bench.
        tell: progress, whole runs at a time.
    """
    ray = _ray()
    with bench.store.held():
        specs = bench.missing()
        if specs:
            _connect(ray, address)
            try:
                _work(ray, bench, specs, Tally(specs, tell))
            finally:
                ray.shutdown()
    return bench.rows()


def _work(ray: ModuleType, bench: Bench, specs: list[RunSpec], tally: Tally) -> None:
    how = Execution(execute_in_worker, None if bench.data is None else bench.data.resolve(), bench.work.resolve())
    remote = ray.remote(_take)
    running = {remote.options(**resources(spec)).remote(how, spec): spec for spec in specs}
    while running:
        done, _ = ray.wait(list(running), num_returns=1)
        for reference in done:
            spec = running.pop(reference)
            try:
                row = ray.get(reference)
            except ray.exceptions.RayError as error:
                row = failed(spec, f"its Ray task died {_RETRIES + 1} times: {type(error).__name__}")
            bench.store.add(row)
            tally.over(spec)


def resources(spec: RunSpec) -> dict[str, Any]:
    """What a run occupies: one core, and a GPU where its settings name one."""
    gpu = str(spec.settings.get("device", "auto")).startswith("cuda")
    return {"num_cpus": 1, "num_gpus": int(gpu), "max_retries": _RETRIES}


def _take(how: Execution, spec: RunSpec) -> Row:
    one_thread()
    return execute_or_fail(how, spec)


def _ray() -> ModuleType:
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
    """Ray itself would wait for minutes where nobody answers."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise RunError(f"there is no Ray cluster at {address}; `ray start --head` starts one") from error
