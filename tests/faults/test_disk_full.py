"""A full disk at every write: one sentence with the path, exit code 2, nothing half-written, and --resume goes on."""

from pathlib import Path

import pytest
from faults.conftest import RUN, STEPS
from faults.forks import Answer, Forks

PAGE = 4096


def sized(forks: Forks, disk: Path, *, pages: int = 16000, inodes: int = 1000) -> None:
    assert forks.ask(shell=f"mount -o remount,size={pages * PAGE},nr_inodes={inodes} {disk}") == 0


def emptied(forks: Forks, disk: Path) -> None:
    assert forks.ask(shell=f"rm -rf {disk}/run") == 0


def run_in_vain(forks: Forks, inputs: tuple[str, ...], disk: Path) -> Answer:
    """A run that finds the disk full, and what it must then say and leave."""
    answer = forks.command("adapt", *inputs, "--out", disk / "run", *RUN)
    if answer.code:
        assert answer.code == 2, answer.err
        assert f"the disk is full at {disk / 'run'}" in answer.sentence
        assert "free some space" in answer.sentence
    return answer


def left_whole(forks: Forks, out: Path, whole: dict[str, str]) -> None:
    """No temporary file, no half line; what the finished run has as well is the same or not there."""
    left = forks.listing(out)
    assert not [name for name in left if name.endswith((".part", ".lock"))], left
    final = {n for n in left if n in whole and not n.startswith("checkpoint/") and n != "metrics.jsonl"}
    assert all(left[name] == whole[name] for name in final), left
    assert forks.ask(shell=f'test ! -s {out}/metrics.jsonl || test -z "$(tail -c 1 {out}/metrics.jsonl)"') == 0


def goes_on(forks: Forks, inputs: tuple[str, ...], disk: Path, whole: dict[str, str]) -> None:
    sized(forks, disk)
    begun = "config.toml" in forks.listing(disk / "run")
    again = ("--resume",) if begun else (*inputs, *RUN)
    answer = forks.command("adapt", "--out", disk / "run", *again)
    assert answer.code == 0, answer.err
    assert forks.listing(disk / "run") == whole
    emptied(forks, disk)


def full_at(forks: Forks, inputs: tuple[str, ...], disk: Path, whole: dict[str, str], **size: int) -> str | None:
    """Which file did not fit; None where all did."""
    emptied(forks, disk)
    sized(forks, disk, **size)
    answer = run_in_vain(forks, inputs, disk)
    left_whole(forks, disk / "run", whole)
    if not answer.code:
        emptied(forks, disk)
        return None
    goes_on(forks, inputs, disk, whole)
    return Path(answer.sentence.split(" at ")[1].split(";")[0]).name


@pytest.mark.slow
def test_whatever_does_not_fit_on_the_disk_is_named_and_nothing_is_lost(
    small_disk: tuple[Forks, Path], inputs: tuple[str, ...], whole: dict[str, str]
) -> None:
    (forks, disk), named, pages = small_disk, [], 1
    while (name := full_at(forks, inputs, disk, whole, pages=pages)) is not None:
        named.append(name)
        pages = pages + max(1, pages // 10)
    assert {"config.toml", "metrics.jsonl", "last.pt"} <= set(named), named
    assert any(name.startswith("candidate-") for name in named), named


@pytest.mark.slow
def test_the_same_for_what_is_written_at_the_end(
    small_disk: tuple[Forks, Path], inputs: tuple[str, ...], whole: dict[str, str], tmp_path: Path
) -> None:
    (forks, disk), named, pages = small_disk, [], 0
    out = disk / "run"
    sized(forks, disk)
    emptied(forks, disk)
    spoil = {"after_lines": STEPS, "shell": "kill -TERM $PPID"}
    assert forks.command("adapt", *inputs, "--out", out, *RUN, **spoil).code == 130
    assert forks.ask(shell=f"cp -a {out} {tmp_path}/trained") == 0
    while True:
        used = f"$(df --output=used -B{PAGE} {disk} | tail -1)"
        assert forks.ask(shell=f"mount -o remount,size=$((({used} + {pages}) * {PAGE})) {disk}") == 0
        answer = forks.command("adapt", "--out", out, "--resume")
        left_whole(forks, out, whole)
        if not answer.code:
            break
        assert answer.code == 2, answer.err
        assert "the disk is full at " in answer.sentence
        named.append(Path(answer.sentence.split(" is full at ")[1].split(";")[0]).name)
        goes_on(forks, inputs, disk, whole)
        assert forks.ask(shell=f"cp -a {tmp_path}/trained {out}") == 0
        pages += 1
    assert {"predictions.csv", "results.json", "report.html", "README.md", "model.safetensors"} <= set(named), named
    emptied(forks, disk)


@pytest.mark.slow
def test_the_same_without_inodes(
    small_disk: tuple[Forks, Path], inputs: tuple[str, ...], whole: dict[str, str]
) -> None:
    (forks, disk), named, inodes = small_disk, [], 2
    while (name := full_at(forks, inputs, disk, whole, inodes=inodes)) is not None:
        named.append(name)
        inodes += 1
    assert len(set(named)) >= 6, named
