"""Images that go away in the middle of a run: one sentence, and --resume goes on when they are back."""

from pathlib import Path

import numpy as np
import pytest
from faults.forks import Forks
from PIL import Image

SMALL = ("--steps", 8, "--checkpoint-every", 2, "--select", "last", "--no-reference", "--batch-size", 8, "-q")
RUN = (*SMALL, "--bottleneck", 8, "--method", "dann+im", "--guide", "im", "--image-size", 16)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for place in range(24):
        for name in (f"source/{'ab'[place % 2]}/{place}.png", f"target/{place}.png"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(folder / name)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "mend", "words"),
    [
        ("mv {}/target {}/away", "mv {}/away {}/target", "does not exist"),
        ("chmod 0 {}/target/*.png", "chmod 644 {}/target/*.png", "cannot be read (Permission denied)"),
        ("truncate -s 60 {}/source/*/*.png", None, "is damaged or truncated"),
    ],
    ids=["gone", "forbidden", "truncated"],
)
def test_the_file_is_named_and_the_run_goes_on_when_it_is_back(
    forks: Forks, pictures: Path, tmp_path: Path, spoil: str, mend: str | None, words: str
) -> None:
    folder = tmp_path / "pictures"
    assert forks.ask(shell=f"cp -r {pictures} {folder}") == 0
    given = ("adapt", "--source", folder / "source", "--target", folder / "target")
    whole = forks.command(*given, "--out", tmp_path / "whole" / "run", *RUN)
    assert whole.code == 0, whole.err
    out = tmp_path / "run"
    spoilt = {"after_lines": 5, "shell": spoil.format(folder, folder), "plain_user": True}
    answer = forks.command(*given, "--out", out, *RUN, **spoilt)
    assert answer.code == 2, answer.err
    assert str(folder) in answer.sentence
    assert words in answer.sentence
    assert f"`paretoda adapt --out {out} --resume` continues from the last checkpoint" in answer.sentence
    assert forks.ask(shell=mend.format(folder, folder) if mend else f"cp -rT {pictures} {folder}") == 0
    assert forks.command("adapt", "--out", out, "--resume", "-q").code == 0
    assert forks.listing(out) == forks.listing(tmp_path / "whole" / "run")
