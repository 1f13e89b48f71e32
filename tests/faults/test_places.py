"""Directories that cannot be used, and two runs in one: a sentence that names the place, exit code 2."""

import os
import platform
from pathlib import Path

import pytest
from faults.conftest import RUN, STEPS
from faults.forks import Forks

from paretoda.io.lock import lock_directory


@pytest.fixture
def begun(forks: Forks, inputs: tuple[str, ...], tmp_path: Path) -> Path:
    """A run that was stopped after its first checkpoint."""
    out = tmp_path / "run"
    spoil = {"after_lines": 5, "shell": "kill -TERM $PPID"}
    assert forks.command("adapt", *inputs, "--out", out, *RUN, **spoil).code == 130
    return out


def test_a_second_run_is_told_who_is_there_and_the_first_loses_nothing(
    forks: Forks, inputs: tuple[str, ...], begun: Path
) -> None:
    before = forks.listing(begun)
    with lock_directory(begun, "a run"):
        for more in (("--resume",), (*inputs, *RUN, "--overwrite"), (*inputs, *RUN)):
            answer = forks.command("adapt", "--out", begun, *more)
            assert answer.code == 2
            assert answer.sentence == (
                f"paretoda: process {os.getpid()} on {platform.node()} is at work in {begun} (a run); "
                "wait for it, or give another --out"
            )
        left = forks.listing(begun)
        assert left.pop(".lock")
        assert left == before
    assert forks.command("adapt", "--out", begun, "--resume").code == 0


def test_of_two_that_begin_at_once_in_a_new_directory_one_is_told(
    forks: Forks, inputs: tuple[str, ...], tmp_path: Path
) -> None:
    out = tmp_path / "new"
    out.mkdir()
    with lock_directory(out, "a run"):
        assert "is at work" in forks.command("adapt", *inputs, "--out", out, *RUN).sentence
    assert forks.command("adapt", *inputs, "--out", out, *RUN, "-q").code == 0


@pytest.mark.parametrize("mode", [0o500, pytest.param(0o000, marks=pytest.mark.slow)])
def test_a_directory_that_may_not_be_written(
    forks: Forks, inputs: tuple[str, ...], begun: Path, tmp_path: Path, mode: int
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=mode)
    for out in (locked, locked / "new", locked / "far" / "new"):
        answer = forks.command("adapt", *inputs, "--out", out, *RUN, plain_user=True)
        assert answer.code == 2, answer.err
        assert str(locked) in answer.sentence
        assert "permission denied" in answer.sentence or "is not readable" in answer.sentence
    begun.chmod(mode)
    answer = forks.command("adapt", "--out", begun, "--resume", plain_user=True)
    begun.chmod(0o700)
    assert answer.code == 2, answer.err
    assert str(begun) in answer.sentence


def test_files_in_the_way(forks: Forks, inputs: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    answer = forks.command("adapt", *inputs, "--out", file, *RUN)
    assert "is a file; give a directory with --out" in answer.sentence
    answer = forks.command("adapt", *inputs, "--out", file / "below", *RUN)
    assert answer.code == 2
    assert f"a part of the path is a file at {file}" in answer.sentence
    assert file.read_text() == "mine"


@pytest.mark.slow
def test_a_disk_that_may_only_be_read(small_disk: tuple[Forks, Path], inputs: tuple[str, ...]) -> None:
    forks, disk = small_disk
    assert forks.ask(shell=f"mount -o remount,ro {disk}") == 0
    answer = forks.command("adapt", *inputs, "--out", disk / "new", *RUN)
    assert forks.ask(shell=f"mount -o remount,rw {disk}") == 0
    assert answer.code == 2
    assert f"the disk is read-only at {disk / 'new'}; choose another place" in answer.sentence


def test_a_clock_that_jumps_by_years_changes_nothing(
    forks: Forks, inputs: tuple[str, ...], whole: dict[str, str], tmp_path: Path
) -> None:
    answer = forks.command("adapt", *inputs, "--out", tmp_path / "run", *RUN, clock=1)
    assert answer.code == 0, answer.err
    assert forks.listing(tmp_path / "run") == whole
    left = [line.split(", ")[1].split(" s left")[0] for line in answer.err.splitlines() if " s left" in line]
    assert len(left) >= STEPS - 3
    assert all(0 <= float(seconds) < 3600 for seconds in left)
