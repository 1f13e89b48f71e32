"""Two Ray workers give the numbers of two local processes, and a worker that dies is replaced."""

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from bench.made import FLAGS, SUITE, environment, specs, wait_for

from paretoda.bench.contenders import Contender
from paretoda.bench.jobs import Bench
from paretoda.bench.ray import resources, run_on_ray
from paretoda.errors import RunError

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'paretoda[ray]'")
DIGITS = ("digits", "--seeds", "2", "--schemes", "linear", "--target-losses", "none", *FLAGS, "--steps", "4")
FEATURES = (SUITE, "--tasks", "A-C", "--seeds", "1", "--methods", "source-only", *FLAGS, "--steps", "300")


def start(data, out, *arguments):
    command = [sys.executable, "-m", "paretoda", "bench", *map(str, arguments), "--out", str(out)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment(data), **streams)


def rows(out):
    found = [json.loads(line) for line in (out / "runs.jsonl").read_text().splitlines()]
    return sorted(({**row, "seconds": 0} for row in found), key=lambda row: row["key"])


def ray_workers(driver):
    """Processes below the driver that are making a run just now."""
    parents, titles = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                titles[int(entry.name)] = (entry / "cmdline").read_bytes()
            except OSError:
                continue
    found = [pid for pid, title in titles.items() if title.startswith(b"ray::_take")]
    return [pid for pid in found if driver in _ancestors(pid, parents)]


def _ancestors(pid, parents):
    while pid in parents:
        pid = parents[pid]
        yield pid


@needs_ray
@pytest.mark.slow
def test_two_ray_workers_and_two_local_processes_give_the_same_numbers(features, tmp_path):
    for name, how in (("local", ("--jobs", "2")), ("ray", ("--ray", "auto"))):
        process = start(features, tmp_path / name, *DIGITS, *how)
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    assert len(rows(tmp_path / "ray")) == 4
    assert rows(tmp_path / "ray") == rows(tmp_path / "local")
    for table in ("chosen.csv", "last.md"):
        assert (tmp_path / "ray" / table).read_text() == (tmp_path / "local" / table).read_text()


@needs_ray
@pytest.mark.slow
def test_a_ray_worker_that_dies_is_replaced(features, tmp_path):
    process = start(features, tmp_path, *FEATURES, "--ray", "auto")
    wait_for(lambda: bool(ray_workers(process.pid)))
    (victim,) = ray_workers(process.pid)
    os.kill(victim, signal.SIGKILL)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    (row,) = rows(tmp_path)
    assert 0.4 < row["accuracy"]["chosen"] <= 1


@needs_ray
@pytest.mark.slow
def test_an_address_without_a_cluster_is_told_in_one_sentence(features, tmp_path):
    process = start(features, tmp_path, *FEATURES, "--ray", "127.0.0.1:1")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert err.splitlines()[-1].startswith("paretoda: there is no Ray cluster at 127.0.0.1:1")
    assert "Traceback" not in err


def test_without_ray_the_extra_is_named(features, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RunError, match=r"pip install 'paretoda\[ray\]'"):
        run_on_ray(Bench(specs(Contender("x", {"method": "dann"})), tmp_path, features), "auto")


@pytest.mark.parametrize(("device", "gpus"), [("auto", 0), ("cpu", 0), ("cuda", 1), ("cuda:1", 1)])
def test_a_run_occupies_a_core_and_a_gpu_where_it_asks_for_one(device, gpus):
    (run,) = specs(Contender("x", {"method": "dann", "device": device}))
    assert resources(run) == {"num_cpus": 1, "num_gpus": gpus, "max_retries": 3}
