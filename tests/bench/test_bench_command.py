"""`paretoda bench` from the outside: words, tables, exit codes."""

import csv
import io

import pytest
from bench.made import FLAGS, SUITE
from bench.test_loading import write_images


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("digit",), "did you mean 'digits'"),
        (("digits", "--tasks", "x"), "there is no task 'x'"),
        (("digits", "--methods", "dannn"), "did you mean 'dann'"),
        (("digits", "--schemes", "pareto"), "did you mean 'paretoda'"),
        (("digits", "--target-losses", "tmc"), "did you mean 'tcm'"),
        (("digits", "--baselines", "logistc"), "did you mean 'logistic'"),
        (("digits", "--base", "dann"), "there is no contender 'dann'"),
        (("digits", "--lrs", "0.1,fast"), "--lrs takes numbers"),
        (("digits", "--lrs", "0.1,-1"), "lr: "),
        (("digits", "--jobs", "2", "--ray", "auto"), "give one of them"),
        (("digits", "--contenders", "nowhere.toml"), "nowhere.toml"),
        ((SUITE, "--data", "nowhere"), "nowhere"),
    ],
)
def test_what_is_wrong_is_one_sentence_before_anything_runs(inside, tmp_path, arguments, said):
    end = inside("bench", *arguments, "--out", tmp_path / "out")
    assert said in end.sentence
    assert not (tmp_path / "out").exists()


def test_tables_appear_in_three_forms_and_scores_choose_among_learning_rates(inside, features, tmp_path):
    given = ("bench", SUITE, "--data", features, "--tasks", "A-C", "--seeds", 2, "--jobs", 1, *FLAGS)
    given = (*given, "--baselines", "logistic-z", "--methods", "dann+im", "--schemes", "linear", "--lrs", "0.01,0.02")
    end = inside(*given, "--out", tmp_path, "--json")
    assert end.code == 0, end.err
    assert end.last_line == {"runs": 6, "failed": 0, "report": str(tmp_path / "report.html")}
    rows = list(csv.DictReader(io.StringIO((tmp_path / "chosen.csv").read_text())))
    assert [row["name"] for row in rows] == ["logistic-z", "dann+im, sum"]
    assert [row["A-C n"] for row in rows] == ["2", "2"]
    assert "| logistic-z |" in (tmp_path / "chosen.md").read_text()
    assert r"\begin{tabular}" in (tmp_path / "last.tex").read_text()
    assert "dann+im, sum" in (tmp_path / "report.html").read_text()
    again = inside(*given, "--out", tmp_path, "--base", "dann+im, sum")
    assert "6 runs, 6 are done already" in again.err
    assert "than dann+im, sum on average" in again.out
    assert inside("report", tmp_path, "--out", tmp_path / "again.html").code == 0, "variants are chosen there as well"
    assert "dann+im, sum" in (tmp_path / "again.html").read_text()


def test_models_can_be_kept(inside, features, tmp_path):
    given = ("bench", SUITE, "--data", features, "--tasks", "A-C", "--seeds", 1, "--jobs", 1, *FLAGS)
    end = inside(*given, "--methods", "source-only", "--keep-runs", "--out", tmp_path)
    assert end.code == 0, end.err
    (folder,) = (tmp_path / "runs").iterdir()
    assert {"model.safetensors", "model.json", "report.html"} <= {path.name for path in folder.iterdir()}


def test_a_suite_of_images_shows_the_papers_numbers_and_a_failure_is_told_and_gives_exit_code_1(inside, tmp_path):
    for domain in ("amazon", "webcam"):
        write_images(tmp_path / "office31" / domain / "images", names=tuple("abcdefgh"))
    given = ("bench", "office31", "--data", tmp_path, "--tasks", "A-W", "--seeds", 1, "--jobs", 1, *FLAGS)
    given = (*given, "--backbone", "cnn", "--image-size", 8, "--augment", "none", "--steps", 40, "--lrs", 0.02)
    end = inside(*given, "--methods", "source-only", "--baselines", "logistic", "--out", tmp_path / "out")
    assert end.code == 1
    assert "A-W, logistic, seed 0 failed: DataError: the baseline 'logistic' reads features or small" in end.err
    assert "1 of 2 runs failed; the same command tries them again." in end.err
    assert "| DANN + ParetoDA (paper) | 95.5 ± 0.1 | 95.5 |" in end.out
    chosen = (tmp_path / "out" / "chosen.csv").read_text().splitlines()[2].split(",")
    assert chosen[0] == "source-only"
    assert float(chosen[1]) == 1.0, "three colours are no riddle; labels beside the wrong images give a third"
