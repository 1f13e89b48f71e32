"""`paretoda report` makes the page of a run's files again, and dispatches on what a directory holds."""

import json
import shutil
from pathlib import Path

import pytest
from cli.processes import Ended, Inside, rows_of

from paretoda.data.drawn.digits import draw_printed_digits, load_handwritten_digits


@pytest.fixture
def copy(finished: tuple[Path, Ended], tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished[0], tmp_path / "a run"))


def test_the_page_of_adapt_is_made_again_to_the_byte(copy: Path, inside: Inside) -> None:
    before = (copy / "report.html").read_bytes()
    (copy / "report.html").unlink()
    said = inside("report", copy, "--json")
    assert said.code == 0, said.err
    assert said.last_line["report"] == str(copy / "report.html")
    assert (copy / "report.html").read_bytes() == before
    text = before.decode()
    assert text.count('class="map"') == 2
    assert "Confusion, held-out source" in text
    assert "oracle" not in text.partition("<body>")[2].lower()


def test_labels_give_oracle_numbers_that_are_called_so(
    copy: Path,
    data: tuple[Path, Path],
    tmp_path: Path,
    inside: Inside,
) -> None:
    out = tmp_path / "new" / "page.html"
    said = inside("report", copy, "--labelled", data[1], "--out", out, "--title", "<b>mine", "--json")
    accuracy = inside("evaluate", copy, data[1], "--json").last_line["accuracy"]
    assert said.last_line["oracle_accuracy"] == {"a run": pytest.approx(accuracy)}
    page = out.read_text(encoding="utf-8")
    assert f'{100 * accuracy:.1f} %</b><span class="soft">accuracy, target (oracle)' in page
    assert "<h1>&lt;b&gt;mine</h1>" in page


def test_data_that_are_gone_or_others_are_told_and_not_shown(
    copy: Path,
    data: tuple[Path, Path],
    inside: Inside,
) -> None:
    config = copy / "config.toml"
    good = config.read_text(encoding="utf-8")
    for other in ("/nowhere/target.npz", str(data[0])):
        config.write_text(good.replace(str(data[1]), other), encoding="utf-8")
        said = inside("report", copy)
        assert said.code == 0
        assert "are not where they were" in " ".join(said.err.split())
        page = (copy / "report.html").read_text(encoding="utf-8")
        assert 'class="map"' not in page
        assert "<h3>Predicted classes" in page


def test_an_unfinished_run_shows_its_curves(copy: Path, inside: Inside) -> None:
    for name in ("model.safetensors", "results.json", "predictions.csv"):
        (copy / name).unlink()
    with (copy / "metrics.jsonl").open("a") as file:
        file.write('{"step": 21, "los')
    assert inside("report", copy).code == 0
    page = (copy / "report.html").read_text(encoding="utf-8")
    assert "has not finished" in page
    assert "<h3>Losses" in page
    assert "--labelled" in inside("report", copy, "--labelled", "x.npz").sentence


def test_several_runs_share_a_page(copy: Path, tmp_path: Path, inside: Inside) -> None:
    other = Path(shutil.copytree(copy, tmp_path / "other"))
    config = other / "config.toml"
    config.write_text(config.read_text(encoding="utf-8").replace("seed = 4", "seed = 5"), encoding="utf-8")
    assert "--out" in inside("report", copy, other).sentence
    assert "twice" in inside("report", copy, copy, "--out", tmp_path / "x.html").sentence
    assert inside("report", copy, other, "--out", tmp_path / "x.html").code == 0
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "<th>seed</th>" in page
    assert "<td>a run</td><td>4</td>" in page


def test_what_is_no_run_is_said_in_one_sentence(copy: Path, tmp_path: Path, inside: Inside) -> None:
    assert "no run" in inside("report", tmp_path).sentence
    bench = tmp_path / "bench"
    bench.mkdir()
    (bench / "runs.jsonl").write_text("{", encoding="utf-8")
    assert "damaged" in inside("report", bench).sentence
    assert "one by one" in inside("report", bench, copy, "--out", tmp_path / "x.html").sentence
    (copy / "results.json").write_text("{", encoding="utf-8")
    assert "damaged" in inside("report", copy).sentence


def test_a_bench_gets_its_own_page(tmp_path: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"key": name, "suite": "s", "task": "t", "name": name, "seed": 0} for name in "ab"]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    seen = []

    def page(rows: list[dict[str, object]], *, title: str) -> str:
        seen.append((rows, title))
        return "the page"

    monkeypatch.setattr("paretoda.report.bench_page.render_bench_page", page)
    assert inside("report", tmp_path, "--title", "T").code == 0
    assert seen == [(rows, "T")]
    assert (tmp_path / "report.html").read_text() == "the page"


def test_a_run_on_images_shows_them(tmp_path: Path, inside: Inside) -> None:
    import numpy as np

    import paretoda

    x, y = draw_printed_digits(60)
    np.savez(tmp_path / "s.npz", x=x, y=y)
    np.savez(tmp_path / "t.npz", x=load_handwritten_digits()[:40])
    small = {"steps": 2, "batch_size": 8, "backbone": "lenet", "reference": False, "select": "last"}
    paretoda.adapt(tmp_path / "s.npz", tmp_path / "t.npz", tmp_path / "run", **small)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert 16 <= page.count('<img src="data:image/png;base64,') <= 24
    assert inside("report", tmp_path / "run", "--out", tmp_path / "again.html").code == 0
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page
    assert len(rows_of(tmp_path / "run" / "predictions.csv")) == 40
