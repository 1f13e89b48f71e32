"""Ctrl-C and SIGTERM at any moment: one sentence, exit code 130, and a directory that can be resumed."""

import random
import signal
from pathlib import Path

import pytest
from faults.conftest import RUN
from faults.forks import Answer, Forks
from faults.test_killed import go_on

BETWEEN = "checkpoint/last-previous.pt"
"""A checkpoint more, at the step of the stop, leaves another one before the last."""


def ends_well(forks: Forks, inputs: tuple[str, ...], out: Path, whole: dict[str, str], answer: Answer) -> None:
    if answer.code != 0:  # a signal that came after the last line
        assert answer.code == 130, answer.err
        words = ("--resume` continues", "nothing was written", "is finished", "paretoda: stopped")
        assert any(word in answer.sentence for word in words), answer.sentence
        answer = go_on(forks, inputs, out)
        assert answer.code == 0, answer.err
    left = forks.listing(out)
    assert {**left, BETWEEN: ""} == {**whole, BETWEEN: ""}


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_at_random_moments_it_can_be_stopped_and_resumed(
    forks: Forks, inputs: tuple[str, ...], whole: dict[str, str], tmp_path: Path, number: int, times: int
) -> None:
    counted = forks.command("adapt", *inputs, "--out", tmp_path / "counted" / "run", *RUN, count=True)
    chance = random.Random(10 * number + times)
    for case in range(5):
        moment = chance.randrange(1, counted.calls)
        out = tmp_path / str(case) / "run"
        given = ("adapt", *inputs, "--out", out, *RUN)
        answer = forks.command(*given, at_call=[(moment + 40 * again, number) for again in range(times)])
        ends_well(forks, inputs, out, whole, answer)


def test_sigterm_in_training_is_a_checkpoint_and_a_sentence(
    forks: Forks, inputs: tuple[str, ...], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    spoil = {"after_lines": 5, "shell": "kill -TERM $PPID"}
    answer = forks.command("adapt", *inputs, "--out", out, *RUN, **spoil)
    assert answer.code == 130
    assert f"stopped after 5 of 9 steps; `paretoda adapt --out {out} --resume` continues from here" in answer.sentence
    assert (out / "checkpoint" / "last.pt").exists()
