"""Every study, made small, on the embedded digits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paretoda.errors import SettingsError
from paretoda.run.build import make_scheme
from paretoda.studies import ablation, backbones, front, guides, path, scales
from paretoda.studies.catalogue import STUDIES, make_study
from paretoda.studies.front import cross_fit_divergence
from paretoda.studies.path import rising_share, summarise_paths
from paretoda.studies.request import StudyRequest
from paretoda.tasks.settings import make_settings


def small(directory: Path, **changes: Any) -> StudyRequest:
    return StudyRequest(**{"directory": directory, "suite": "digits", "seeds": 1, "settings": {"steps": 5}, **changes})


def check_files(folder: Path) -> None:
    text, page = (folder / "study.md").read_text(), (folder / "report.html").read_text()
    assert "To repeat it" in text
    assert "torch" in page
    for figure in folder.glob("*.svg"):
        assert f"({figure.name})" in text
        assert figure.read_text().startswith("<?xml")


def test_paths_start_at_one_point_and_a_second_call_makes_no_run(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(path, "PATHS", {name: path.PATHS[name] for name in ("sum", path.IDEAL, path.CONTROL)})
    told: list[int] = []
    ask = small(tmp_path, tell=lambda _what, done, _total: told.append(done))
    first = make_study("path", ask, "again")
    assert sorted(set(told)) == list(range(1, 16))
    assert told == sorted(told)
    heard = len(told)
    lines = (tmp_path / "runs.jsonl").read_text()
    second = make_study("path", ask, "again")
    assert len(told) == heard
    assert (tmp_path / "runs.jsonl").read_text() == lines
    assert first.answer == second.answer
    assert not first.failures
    import json

    starts = [json.loads(line)["points"][0] for line in lines.splitlines()]
    assert starts[0] == starts[1]
    check_files(tmp_path)


def test_front(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(front, "SHARES", (0.1, 0.9))
    monkeypatch.setattr(front, "RAYS", (1.0,))
    monkeypatch.setattr(front, "METHODS", ("dann",))
    page = make_study("front", small(tmp_path, seeds=2), "")
    assert not page.failures
    assert len(page.answer) == len(front.MEASURES)
    check_files(tmp_path)


def test_scales(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(scales, "FACTORS", (0.1, 1.0))
    monkeypatch.setattr(scales, "SCHEMES", {"paretoda": {"scheme": "paretoda"}})
    page = make_study("scales", small(tmp_path), "")
    assert not page.failures
    assert "range" in page.answer[0]
    check_files(tmp_path)


def test_calibrated_losses_have_no_scale(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(scales, "SCHEMES", {"sum": {"scheme": "linear"}})
    request = small(tmp_path, settings={"steps": 5, "calibrate": True}, factors=(0.01, 100.0))
    page = make_study("scales", request, "")
    assert not page.failures
    assert "a range of 0.0 points" in page.answer[0]
    assert page.sections[0].grid is not None
    assert page.sections[0].grid.columns == ["", "λ1 = 0.01", "λ1 = 100.0"]


def test_factors_without_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="positive factors, not by 0; change --factors"):
        make_study("scales", small(tmp_path, factors=(0.0, 1.0)), "")
    with pytest.raises(SettingsError, match="--factors are for the study 'scales', not for 'front'"):
        make_study("front", small(tmp_path, factors=(0.1, 1.0)), "")


def test_an_ablation_of_one_group_has_its_rows_and_no_others(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(ablation.ROWS, "ours", ablation.OURS[:1])
    page = make_study("ablation", small(tmp_path, rows="ours"), "")
    assert page.sections[0].grid is not None
    assert [row[0] for row in page.sections[0].grid.rows] == ["source-only"]
    assert list(page.answer) == ["The best row is source-only."]
    with pytest.raises(SettingsError, match="no group of rows 'mine'"):
        make_study("ablation", small(tmp_path, rows="mine"), "")
    with pytest.raises(SettingsError, match="--rows is for the study 'ablation', not for 'front'"):
        make_study("front", small(tmp_path, rows="paper"), "")


def test_guides(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(guides, "SCHEMES", {"linear": {"scheme": "linear"}})
    page = make_study("guides", small(tmp_path), "")
    assert not page.failures
    assert (tmp_path / "checkpoints.csv").read_text().count("\n") == 6
    check_files(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ablation", "backbones"])
def test_benchmarks(tmp_path: Path, name: str) -> None:
    page = make_study(name, small(tmp_path, jobs=2), "")
    assert not page.failures
    check_files(tmp_path)


def test_every_row_of_the_ablation_can_be_built_and_all_differ() -> None:
    parts = [*ablation.PAPER, *ablation.OURS]
    for part in parts:
        make_scheme(make_settings({"method": "dann", **part.settings}))
    assert len({part.name for part in parts}) == len({str(part.settings) for part in parts}) == len(parts)
    assert set(STUDIES) == {"ablation", "path", "scales", "backbones", "front", "guides"}
    assert backbones.choose_networks(StudyRequest(Path()))[backbones.DEEP] == backbones.WIDTHS


def test_facts_of_known_paths() -> None:
    def row(name: str, ends: list[float]) -> dict[str, Any]:
        keys = ("source", "alignment", "target", "oracle_accuracy")
        points = [dict(zip(keys, values, strict=True)) for values in ([2.0, 1.0, 2.0, 0.1], ends)]
        return {"name": name, "seed": 0, "points": points}

    facts = summarise_paths([row("ideal", [0.0, 0.0, 0.0, 0.9]), row("same", [0.0, 0.0, 0.0, 0.5])], "ideal")
    assert facts["same"]["distance"] == [0.0]
    assert facts["same"]["cosine"] == [pytest.approx(1)]
    assert rising_share(np.array([[1.0], [0.5], [0.8], [0.0]])) == pytest.approx(1 / 3)


def test_probe_proves_nothing_where_there_is_nothing_and_much_where_domains_lie_apart() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(80, 5)), rng.normal(size=(120, 5))
    assert cross_fit_divergence(one, other) < 0.05
    assert cross_fit_divergence(one, other + 5) > 0.5
    assert cross_fit_divergence(one, 4 * other) > 0.1  # same mean: only the kernels can tell
