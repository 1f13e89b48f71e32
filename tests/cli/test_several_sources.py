"""Several sources on the command line: --source again and again, a list in a file, the doctor, bad input."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from cli.conftest import CLASSES, features
from cli.processes import SMALL, Inside
from PIL import Image

from paretoda.run.directory.directory import RunDirectory

PAGE = Path(__file__).parents[2] / "docs" / "several-sources.md"
QUICK = ["--select", "last", "--no-reference", "--quiet"]


@pytest.fixture
def folders(tmp_path):
    """Two sources and a target as folders of images; the second source has other shades."""
    rng = np.random.default_rng(0)
    for domain, shade in (("A", 0), ("B", 60), ("T", 30)):
        for place, name in enumerate(("ant", "bee", "cat")):
            folder = tmp_path / domain / name
            folder.mkdir(parents=True)
            for number in range(8):
                image = rng.integers(0, 60, size=(12, 12))
                image[:, 4 * place : 4 * place + 4] += 120
                Image.fromarray((image + shade).astype(np.uint8)).save(folder / f"{number}.png")
    return tmp_path


def test_the_command_of_the_page_runs_as_printed_and_what_follows_a_run_works(tmp_path, monkeypatch, inside: Inside):
    monkeypatch.chdir(tmp_path)
    for file, count, shift in (("A", 60, 0.0), ("B", 48, 3.0), ("T", 45, 1.0)):
        np.savez(f"{file}.npz", **features(count, shift, count))
    (line,) = re.findall(r"^paretoda (adapt .*)$", PAGE.read_text(encoding="utf-8"), flags=re.M)
    ended = inside(*shlex.split(line), *SMALL, "--json")
    assert ended.code == 0, ended.err
    run = RunDirectory(tmp_path / "RUN")
    assert run.read_config()[1]["source"] == [str(tmp_path / "A.npz"), str(tmp_path / "B.npz")]
    assert list(run.read_metrics()[0]["weights"])[:4] == ["source-1", "alignment-1", "source-2", "alignment-2"]
    for words in (
        ["predict", "RUN", "T.npz"],
        ["evaluate", "RUN", "T.npz"],
        ["report", "RUN"],
        ["export", "RUN", "--format", "torch"],
    ):
        found = inside(*words)
        assert found.code == 0, found.err
    ended = inside("doctor", "--source", "A.npz", "--source", "B.npz", "--target", "T.npz", "--json")
    said = json.loads(ended.out.splitlines()[-1])
    assert ended.code == 0
    assert {"source 1", "source 2"} <= {finding["domain"] for finding in said["findings"]}
    assert sum("target has labels" in finding["message"] for finding in said["findings"]) == 1


def test_folders_train_from_a_file_with_a_list_and_pooled_from_the_command_line(folders, monkeypatch, inside: Inside):
    monkeypatch.chdir(folders)
    Path("my.toml").write_text('source = ["A", "B"]\ntarget = "T"\nsteps = 2\nbatch_size = 8\nbackbone = "cnn"\n')
    ended = inside("adapt", "--config", "my.toml", "--out", "one", *QUICK)
    assert ended.code == 0, ended.err
    assert "alignment-2" in RunDirectory(Path("one")).read_metrics()[0]["losses"]
    ended = inside("adapt", "--config", "my.toml", "--sources", "pooled", "--out", "two", *QUICK)
    assert ended.code == 0, ended.err
    assert list(RunDirectory(Path("two")).read_metrics()[0]["losses"])[:2] == ["source", "alignment"]
    ended = inside("adapt", "--config", "my.toml", "--source", "A", "--out", "three", *QUICK)
    assert ended.code == 0, ended.err
    assert RunDirectory(Path("three")).read_config()[1]["source"] == str(folders / "A")


def test_sources_that_do_not_fit_end_with_one_sentence(folders, monkeypatch, inside: Inside):
    monkeypatch.chdir(folders)
    (folders / "B" / "cat").rename(folders / "B" / "dog")
    np.savez("F.npz", **features(30, 0.0, 1))
    pairs = {
        ("A", "B"): "source 2 lacks cat and has dog besides",
        ("A", "F.npz"): "source 2 is features, source 1 is images",
        ("A", "nowhere"): "source 2: nowhere does not exist",
    }
    for (one, other), sentence in pairs.items():
        for words in (["adapt", "--out", "run"], ["doctor"]):
            ended = inside(*words, "--source", one, "--source", other, "--target", "T")
            said = " ".join(f"{ended.out} {ended.err}".split())
            assert ended.code == 2
            assert "Traceback" not in said
            if words[0] == "adapt":
                assert sentence in said
                assert not Path("run").exists()
    ended = inside("adapt", "--source", "A", "--source", "B", "--target", "T", "--task", "segmentation", "--out", "run")
    assert (ended.code, "several sources are not for segmentation; give one --source" in ended.err) == (2, True)
    assert len(CLASSES) == 3
