"""Names on a terminal are seen, not obeyed."""

import json
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from cli.processes import SMALL, Inside
from hypothesis import given
from hypothesis import strategies as st

from paretoda.cli.console import LONGEST_SENTENCE, escape_controls, shorten
from paretoda.errors import SettingsError

EVIL = ("\x1b]0;owned\x07<script>alert(1)</script>", "=cmd|' /C calc'!A0", 'a"b\nc\x9b31m\u202e')


@given(st.text())
def test_what_is_shown_holds_nothing_that_acts(text: str) -> None:
    safe = escape_controls(text, keep="")
    assert all(unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for letter in safe)
    safe.encode("utf-8")
    if text.isprintable():
        assert safe == text


def test_a_sentence_has_an_end() -> None:
    assert len(shorten("x" * 10**6)) < LONGEST_SENTENCE + 10
    assert shorten("short") == "short"


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data whose classes have hostile names."""
    folder = tmp_path_factory.mktemp("evil")
    rng = np.random.default_rng(0)
    for name in ("source", "target"):
        y = np.arange(45) % 3
        x = (rng.normal(size=(45, 4)) + 3 * np.eye(3, 4)[y]).astype(np.float32)
        np.savez(folder / f"{name}.npz", x=x, y=y, classes=np.array(EVIL))
    return folder


def test_no_command_prints_a_name_raw(named: Path, tmp_path: Path, inside: Inside) -> None:
    source, target, run = named / "source.npz", named / "target.npz", tmp_path / "run"
    said = [inside("adapt", "--source", source, "--target", target, "--out", run, *SMALL, "--device", "cpu")]
    said += [inside("evaluate", run, target), inside("evaluate", run, target, "--json")]
    said += [inside("predict", run, target, "--out", tmp_path / "p.csv"), inside("report", run, "--labelled", target)]
    said += [inside("predict", run, target, "--json"), inside("doctor", "--source", source, "--target", target)]
    for one in said:
        assert one.code == 0, one.err
        for stream in (one.out, one.err):
            assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(stream)
    assert set(said[2].last_line["per_class"]) <= set(EVIL), "JSON says the names themselves"
    assert {row["prediction"] for row in said[5].last_line["predictions"]} <= set(EVIL)
    table = (tmp_path / "p.csv").read_text(encoding="utf-8")
    assert ",'=cmd" in table or "'=cmd|' /C calc'!A0" in table
    assert "\n=cmd" not in table
    assert json.loads((run / "model.json").read_text(encoding="utf-8"))["classes"] == list(EVIL)
    assert "<script>" not in (run / "report.html").read_text(encoding="utf-8")


def test_an_error_prints_no_name_raw(tmp_path: Path, inside: Inside) -> None:
    path = tmp_path / "a\x1b[31m\u202e.npz"
    path.write_text("no archive")
    sentence = inside("adapt", "--source", path, "--target", path, "--out", tmp_path / "run").sentence
    assert "\\x1b[31m\\u202e.npz" in sentence
    assert len(inside("adapt", "--method", "x" * 10**5, "--out", tmp_path / "run").err) < LONGEST_SENTENCE + 100
    assert issubclass(SettingsError, ValueError)


def test_limits_are_lifted_for_one_command(tmp_path: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETODA_MAX_UNPACKED_BYTES", "100")
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros((40, 1000), np.float32), y=np.arange(40) % 2)
    given = ("doctor", "--source", tmp_path / "x.npz", "--target", tmp_path / "x.npz")
    assert "--max-unpacked-bytes" in inside(*given).out
    assert "--max-unpacked-bytes" not in inside("--max-unpacked-bytes", 10**6, *given).out
    assert inside("--max-image-pixels", "0", *given).code == 2
