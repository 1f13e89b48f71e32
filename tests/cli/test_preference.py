"""One trained network, a prediction for every preference."""

from pathlib import Path

import pytest
from cli.processes import Ended, Inside, rows_of


def test_a_front_is_trained_and_asked(data: tuple[Path, Path], tmp_path: Path, inside: Inside) -> None:
    run = tmp_path / "run"
    given = ("--source", data[0], "--target", data[1], "--out", run, "--steps", 30, "--batch-size", 16)
    said = inside("adapt", *given, "--scheme", "hypernetwork", "--method", "dann+im", "--select", "last", "--lr", 0.2)
    assert said.code == 0, said.err
    assert "--preference 1,1,1 (source, alignment, target)" in " ".join(said.out.split())
    files = {}
    for preference in (None, "3,3,3", "1,0.3,0.3", "0,0,1"):
        files[preference] = tmp_path / f"{preference}.csv"
        flags = () if preference is None else ("--preference", preference)
        assert inside("predict", run, data[1], "--out", files[preference], *flags).code == 0
    texts = {preference: file.read_text() for preference, file in files.items()}
    assert texts[None] == texts["3,3,3"]
    assert len(set(texts.values())) == 3
    rows = rows_of(files["1,0.3,0.3"])
    found = inside("evaluate", run, data[1], "--preference", "1,0.3,0.3", "--json").last_line
    plain = inside("evaluate", run, data[1], "--json").last_line
    assert found["samples"] == len(rows)
    assert found["ece"] != plain["ece"]


@pytest.mark.parametrize(
    ("preference", "said"),
    [("1,much", "--preference takes numbers"), ("1,2,3", "train one with --scheme hypernetwork")],
)
def test_a_wrong_preference_is_one_sentence(
    finished: tuple[Path, Ended], data: tuple[Path, Path], inside: Inside, preference: str, said: str
) -> None:
    for command in ("predict", "evaluate"):
        assert said in inside(command, finished[0], data[1], "--preference", preference).sentence
