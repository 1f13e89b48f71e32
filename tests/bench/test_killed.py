"""`paretoda bench` killed, stopped and restarted: the same table, and no process left behind."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from bench.made import FLAGS, SUITE, alive_in_group, environment, wait_for, whole_lines
from cli.processes import Ended

TABLES = ("chosen.csv", "last.csv", "chosen.md", "last.md", "chosen.tex")
SMALL = ("--seeds", "2", "--schemes", "linear", "--target-losses", "none", *FLAGS)
FEATURES = (SUITE, "--tasks", "A-C,C-A", *SMALL, "--steps", "12")
DIGITS = ("digits", *SMALL, "--seeds", "3")


@contextmanager
def started(data, out, *arguments):
    """A bench in a process group of its own, of which nothing is left afterwards, however the test ends."""
    command = [sys.executable, "-m", "paretoda", "bench", *arguments, "--jobs", "2", "--out", str(out)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment(data), start_new_session=True, **streams) as process:
        try:
            yield process
        finally:
            if alive_in_group(process.pid):
                os.killpg(process.pid, signal.SIGKILL)


def ended(process):
    out, err = process.communicate(timeout=300)
    return Ended(process.returncode, out, err)


def tables(directory):
    return [(directory / name).read_text() for name in TABLES]


@pytest.mark.parametrize(
    ("arguments", "runs"), [(FEATURES, 8), pytest.param(DIGITS, 6, marks=pytest.mark.slow)], ids=["features", "digits"]
)
def test_killed_half_way_and_restarted_it_gives_the_table_of_an_undisturbed_bench(
    features, tmp_path, inside, arguments, runs
):
    given = ("bench", *arguments, "--data", features, "--jobs", 2)
    assert inside(*given, "--out", tmp_path / "whole").code == 0
    with started(features, tmp_path / "killed", *arguments) as killed:
        wait_for(lambda: whole_lines(tmp_path / "killed") >= 2)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        wait_for(lambda: not alive_in_group(killed.pid))
    before = (tmp_path / "killed" / "runs.jsonl").read_bytes()
    done = before.count(b"\n")
    assert 2 <= done < runs
    assert not (tmp_path / "killed" / "chosen.md").exists()
    with (tmp_path / "killed" / "runs.jsonl").open("ab") as file:
        file.write(b'{"key": "half a li')
    again = inside(*given, "--out", tmp_path / "killed")
    assert again.code == 0, again.err
    assert f"{runs} runs, {done} are done already" in again.err
    assert tables(tmp_path / "killed") == tables(tmp_path / "whole")
    after = (tmp_path / "killed" / "runs.jsonl").read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == runs, "nothing is made twice"


def test_ctrl_c_is_one_sentence_and_leaves_nobody_behind(features, tmp_path):
    with started(features, tmp_path, *FEATURES, "--steps", "100000") as stopped:
        wait_for(lambda: len(alive_in_group(stopped.pid)) >= 3)
        wait_for((tmp_path / ".lock").exists)
        os.killpg(stopped.pid, signal.SIGINT)  # as a terminal does: to everybody
        end = ended(stopped)
        wait_for(lambda: not alive_in_group(stopped.pid), seconds=10)
    assert end.code == 130
    lines = end.err.splitlines()
    assert lines[-1] == "paretoda: stopped; 0 of 8 runs are done, the same command continues"
    assert "Traceback" not in end.err
    assert all(line.startswith(("office-caltech10: 8 runs", "training: ", "paretoda: ")) for line in lines), end.err
