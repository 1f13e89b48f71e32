"""SIGKILL at any moment, then --resume: the same bytes in every file as if nothing had happened."""

import random
import signal
from pathlib import Path

import pytest
from faults.conftest import RUN
from faults.forks import Answer, Forks

KILLS = 20


def go_on(forks: Forks, given: tuple[object, ...], out: Path) -> Answer:
    """What a user does: resume, or begin again where the run had not begun."""
    if (out / "model.safetensors").exists():
        answer = forks.command("adapt", "--out", out, "--resume")
        assert "is finished" in answer.sentence
        answer.code = 0
        return answer
    if (out / "config.toml").exists():
        return forks.command("adapt", "--out", out, "--resume")
    return forks.command("adapt", *given, "--out", out, *RUN)


def survives(forks: Forks, given: tuple[str, ...], out: Path, whole: dict[str, str], **fault: object) -> None:
    killed = forks.command("adapt", *given, "--out", out, *RUN, **fault)
    assert killed.code == -signal.SIGKILL, (fault, killed.err)
    answer = go_on(forks, given, out)
    assert answer.code == 0, (fault, answer.err)
    assert forks.listing(out) == whole, fault


@pytest.mark.slow
def test_killed_at_twenty_random_moments_it_ends_with_the_same_bytes(
    forks: Forks, inputs: tuple[str, ...], whole: dict[str, str], tmp_path: Path
) -> None:
    counted = forks.command("adapt", *inputs, "--out", tmp_path / "counted" / "run", *RUN, count=True)
    assert counted.code == 0
    chance = random.Random(7)
    for number in range(KILLS):
        moment = chance.randrange(1, counted.calls)
        out = tmp_path / str(number) / "run"
        survives(forks, inputs, out, whole, at_call=[(moment, signal.SIGKILL)])


@pytest.mark.slow
def test_killed_before_every_change_of_a_file_it_ends_with_the_same_bytes(
    forks: Forks, inputs: tuple[str, ...], whole: dict[str, str], tmp_path: Path
) -> None:
    counted = forks.command("adapt", *inputs, "--out", tmp_path / "counted" / "run", *RUN)
    assert counted.changes > 80
    for number in range(1, counted.changes + 1):
        out = tmp_path / str(number) / "run"
        survives(forks, inputs, out, whole, at_change=[(number, signal.SIGKILL)])


def test_killed_twice_in_a_row_it_still_ends_with_the_same_bytes(
    forks: Forks, inputs: tuple[str, ...], whole: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    killed = forks.command("adapt", *inputs, "--out", out, *RUN, at_change=[(30, signal.SIGKILL)])
    assert killed.code == -signal.SIGKILL
    killed = forks.command("adapt", "--out", out, "--resume", at_change=[(12, signal.SIGKILL)])
    assert killed.code == -signal.SIGKILL
    assert forks.command("adapt", "--out", out, "--resume").code == 0
    assert forks.listing(out) == whole
