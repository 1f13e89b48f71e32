"""Damaged files of every kind are read or refused in one sentence: no other error, no hang, no great allocation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile.campaign import campaign, outcome
from hostile.readers import Reader, fresh, make_readers

CASES = int(os.environ.get("PARETODA_FUZZ", "50"))
"""Of each reader, in this process."""
MANY = 900
"""Of each reader, in the slow campaign."""
FOUND = {
    "npz features": (6, 14, 27),
    "npz images": (5, 18, 19),
    "npz scenes": (18, 79, 105),
    "npz of a suite": (0, 1, 2),
    "doctor": (8, 11, 18),
    "candidate": (0, 1, 2),
    "model.json": (23, 93, 178),
    "image model.json": (65, 147, 148),
    "scene model.json": (173,),
    "metrics.jsonl": (0, 1, 2),
    "results.json": (4, 10, 11, 229, 892),
    "runs.jsonl": (144, 738),
    "predictions.csv": (0, 3, 6),
    "contenders": (7, 32, 60),
    "weights .pth": (7, 12, 20),
    "weights .pth inside": (11, 36, 48),
}
"""Numbers of the cases that the readers of before did not survive; docs/reliability.md says how they ended."""
NAMES = [
    *("npz features", "npz images", "npz scenes", "npz of a suite", "doctor", "list", "scene list", "classes.txt"),
    *("images", "png images", "label maps", "checkpoint", "candidate", "model.safetensors", "model.json"),
    *("image model.json", "outside model.json", "scene model.json", "scene model", "config.toml", "metrics.jsonl"),
    "results.json",
    *("predictions.csv", "runs.jsonl", "contenders", "weights .pth", "weights .pth inside", "weights .safetensors"),
    "stored features",
]


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    return make_readers(tmp_path_factory.mktemp("whole"))


def test_every_reader_is_named_here(readers: dict[str, Reader]) -> None:
    assert list(readers) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_whole_files_are_read_and_damaged_ones_are_read_or_refused(
    name: str, readers: dict[str, Reader], tmp_path: Path
) -> None:
    reader = readers[name]
    for file, content in reader.files.items():
        fresh(reader, tmp_path / "whole")
        (tmp_path / "whole" / file).parent.mkdir(exist_ok=True)
        (tmp_path / "whole" / file).write_bytes(content)
        assert outcome(reader, tmp_path / "whole" / file) == "read", file
    cases = sorted({*range(CASES), *FOUND.get(name, ())})
    counts, wrong = campaign(name, reader, cases, tmp_path / "damaged")
    assert not wrong, "\n".join(wrong[:3])
    assert sum(counts.values()) == len(cases)
    print(f"{name}: {len(cases)} cases, {counts}")


@pytest.mark.slow
def test_tens_of_thousands_in_a_process_with_little_memory() -> None:
    place = Path(__file__).parents[1]
    command = [sys.executable, "-m", "hostile.campaign", str(MANY)]
    paths = os.pathsep.join([str(place), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
    assert f"{MANY * len(NAMES)} cases in all, 0 wrong" in ended.stdout
