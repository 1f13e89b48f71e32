"""Calibrated confidence and abstention from the command line, and what cannot be calibrated."""

import json
import shutil
from pathlib import Path

import pytest
from cli.processes import Ended, Inside, rows_of


def table(inside: Inside, run: Path, data: Path, out: Path, *flags: object) -> tuple[list[dict[str, str]], Ended]:
    end = inside("predict", run, data, "--out", out, *flags)
    assert end.code == 0, end.err
    return rows_of(out), end


@pytest.fixture
def hot(finished: tuple[Path, Ended], tmp_path: Path) -> Path:
    """The run with a temperature that shows."""
    run = tmp_path / "hot"
    shutil.copytree(finished[0], run)
    facts = json.loads((run / "model.json").read_text())
    (run / "model.json").write_text(json.dumps(facts | {"temperature": 3.0}))
    return run


def test_calibration_changes_confidences_and_no_class(
    hot: Path, data: tuple[Path, Path], tmp_path: Path, inside: Inside
) -> None:
    plain, _ = table(inside, hot, data[1], tmp_path / "a.csv")
    cool, _ = table(inside, hot, data[1], tmp_path / "b.csv", "--calibrated")
    assert [row["prediction"] for row in plain] == [row["prediction"] for row in cool]
    pairs = [(float(a["confidence"]), float(b["confidence"])) for a, b in zip(plain, cool, strict=True)]
    assert all(one >= other for one, other in pairs)
    assert any(one > other + 0.01 for one, other in pairs)


def test_rows_below_the_threshold_have_no_answer_and_keep_their_confidence(
    hot: Path, data: tuple[Path, Path], tmp_path: Path, inside: Inside
) -> None:
    cool, _ = table(inside, hot, data[1], tmp_path / "a.csv", "--calibrated")
    threshold = sorted(float(row["confidence"]) for row in cool)[20] + 1e-4
    rows, end = table(inside, hot, data[1], tmp_path / "b.csv", "--abstain-below", threshold)
    wanted = [row if float(row["confidence"]) >= threshold else row | {"prediction": ""} for row in cool]
    assert rows == wanted
    silent = sum(not row["prediction"] for row in rows)
    assert silent > 20
    assert f"{silent} of 45 have no answer" in end.err
    facts = inside("predict", hot, data[1], "--abstain-below", threshold, "--json").last_line
    assert facts["abstained"] == silent
    assert facts["calibrated"]
    assert sum(facts["counts"].values()) == 45 - silent
    found = inside("evaluate", hot, data[1], "--abstain-below", threshold, "--json").last_line
    assert found["coverage"] == pytest.approx(1 - silent / 45)
    truth = ["cat", "dög", "<script>alert(1)</script>"] * 15
    right = [row["prediction"] == label for row, label in zip(rows, truth, strict=True) if row["prediction"]]
    assert found["selective_accuracy"] == pytest.approx(sum(right) / len(right))
    assert "right of these:" in inside("evaluate", hot, data[1], "--abstain-below", threshold).out


def test_where_nothing_is_certain_enough_nothing_is_answered(
    hot: Path, data: tuple[Path, Path], inside: Inside
) -> None:
    found = inside("evaluate", hot, data[1], "--abstain-below", 1, "--json").last_line
    assert found["coverage"] == 0
    assert found["selective_accuracy"] is None
    assert "nothing was answered" in inside("evaluate", hot, data[1], "--abstain-below", 1).out


def test_a_run_of_an_older_version_has_no_temperature_and_says_so(
    hot: Path, data: tuple[Path, Path], inside: Inside
) -> None:
    facts = json.loads((hot / "model.json").read_text())
    del facts["temperature"]
    (hot / "model.json").write_text(json.dumps(facts))
    assert "leave out --calibrated" in inside("predict", hot, data[1], "--calibrated").sentence
    end = inside("predict", hot, data[1], "--abstain-below", 0.5, "--json")
    assert "Confidences are not calibrated" in end.err
    assert not end.last_line["calibrated"]
    (hot / "model.json").write_text(json.dumps(facts | {"temperature": "hot"}))
    assert "temperature" in inside("predict", hot, data[1]).sentence


def test_refined_predictions_have_no_temperature(hot: Path, data: tuple[Path, Path], inside: Inside) -> None:
    assert "leave out --calibrated" in inside("evaluate", hot, data[1], "--refined", "--calibrated").sentence
    assert "not calibrated" in inside("predict", hot, data[1], "--refined", "--abstain-below", 0.5).err


def test_a_threshold_is_a_share(hot: Path, data: tuple[Path, Path], inside: Inside) -> None:
    assert "--abstain-below" in inside("predict", hot, data[1], "--abstain-below", 80).sentence


def test_export_says_in_one_sentence_what_is_wrong(hot: Path, tmp_path: Path, inside: Inside) -> None:
    assert "is missing" in inside("export", tmp_path / "nowhere").sentence
    assert "leave out --transforms" in inside("export", hot, "--transforms").sentence
    (hot / "model.safetensors").write_bytes(b"no")
    assert "damaged" in inside("export", hot).sentence
    assert not (hot / "model.onnx").exists()
