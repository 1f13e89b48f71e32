"""`torchrun … -m paretoda adapt`: the run of one process, whatever the number of processes and their fate."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli.processes import Ended, ended, environment, rows_of, start
from tasks.segmentation.conftest import folders, streets  # noqa: F401  (fixtures)

SMALL = ("--bottleneck", 8, "--batch-size", 9, "--members", 1)
SETTINGS = ("--steps", 12, "--evaluate-every", 6, "--checkpoint-every", 3, *SMALL)
LOSES_ONE = """
import os, signal, sys
from paretoda.cli import main
from paretoda.training.loop import fit as taken
import paretoda.run.train as training

def fit(step, batches, *, after, **how):
    def lost(done, _report):
        if done == 8 and os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
    return taken(step, batches, after=[lost, *after], **how)

training.fit = fit
main(sys.argv[1:])
"""
"""The command line with a process that is killed after step 8."""


def torchrun(count, *arguments, program=("-m", "paretoda")) -> subprocess.Popen:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    return subprocess.Popen(
        [*launcher, *program, *map(str, arguments)],
        env=environment() | {"PYTHONWARNINGS": "ignore"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ours(err: str) -> list[str]:
    """Our own sentences among torchrun's words."""
    return [line for line in err.splitlines() if line.startswith("paretoda: ")]


@pytest.mark.slow
def test_a_run_of_two_processes_can_be_killed_and_goes_on_as_the_run_of_one(data, tmp_path):
    source, target = data
    given = ("adapt", "--source", source, "--target", target, *SETTINGS, "--no-reference")
    alone = start(*given, "--out", tmp_path / "one", "--json", "--quiet")
    script = tmp_path / "loses_one.py"
    script.write_text(LOSES_ONE)
    killed = ended(torchrun(2, *given, "--out", tmp_path / "several", program=(str(script),)))
    assert killed.code != 0
    (sentence,) = ours(killed.err)
    assert "process 1 of 0..1 ended without a word" in sentence
    assert "--resume` continues from the last checkpoint" in sentence
    resumed = ended(torchrun(3, "adapt", "--out", tmp_path / "several", "--resume", "--json", "--quiet"))
    assert resumed.code == 0, resumed
    assert len(resumed.out.splitlines()) == 1  # the first process alone speaks
    _same(ended(alone), resumed)
    one, several = (rows_of(tmp_path / name / "predictions.csv") for name in ("one", "several"))
    assert [row["prediction"] for row in one] == [row["prediction"] for row in several]
    lines = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("one", "several")]
    assert len(lines[0]) == len(lines[1]) == 12
    losses = [[list(json.loads(line)["losses"].values()) for line in run] for run in lines]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3, atol=1e-4)


def _same(one: Ended, other: Ended) -> None:
    assert one.last_line["chosen_step"] == other.last_line["chosen_step"]
    for name, value in one.last_line["scores"].items():
        assert other.last_line["scores"][name] == pytest.approx(value, rel=1e-3, abs=1e-3), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (("--target", "nowhere.npz"), "nowhere.npz"),
        (("--batch-size", 2), "a batch of 2 samples cannot be shared by 3 processes"),
        (("--scheme", "metaalign"), "'metaalign' trains in one process only"),
        (("--no-such-option",), "--no-such-option"),
    ],
)
def test_a_mistake_is_told_once(data, tmp_path, changed, expected):
    source, target = data
    given = ("adapt", "--source", source, "--target", target, "--out", tmp_path / "run", *SETTINGS, *changed)
    done = ended(torchrun(3, *given))
    (sentence,) = ours(done.err)
    assert expected in sentence
    assert done.code != 0
    assert re.search(r"exitcode\s*: 2", done.err)
    assert done.err.count("Traceback") == 1  # torchrun's own
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_sharded_example_of_the_documents_is_the_same_in_one_and_in_two_processes(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "processes.md").read_text(encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1))
    one, two = (ended(torchrun(count, program=(str(script),))) for count in (1, 2))
    assert one.code == 0, one
    assert one.out.startswith("source ")
    assert two.out == one.out


def test_other_commands_are_for_one_process(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "paretoda", "demo", "--out", str(tmp_path / "demo")],
        env=environment() | {"WORLD_SIZE": "2", "RANK": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "demo is for one process; start it without torchrun" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("advent", ()),
        ("adasegnet", ("--options", "alignment.gate=0.45,alignment.strength=0.1,source.focal=2,target.floor=-4")),
        ("cbst", ()),
        ("cbst", ("--options", "alignment.mirror=true,alignment.scale=0.9")),
    ],
)
def test_a_segmentation_run_of_two_processes_is_the_run_of_one(folders, tmp_path, method, options):  # noqa: F811
    """Their batches are maps, CBST's pseudo-labels come from a look at the whole target, a gate from the joint maps.

    With SGD, because Adam's first steps make the sign of a rounding error a whole step.
    """
    given = ["adapt", "--task", "segmentation", "--source", folders / "source", "--target", folders / "target"]
    given += ["--method", method, "--steps", 6, "--batch-size", 3, "--evaluate-every", 3, "--refresh-every", 2]
    given += ["--optimiser", "sgd", "--device", "cpu", "--no-reference", "--json", "--quiet", *options]
    alone = ended(start(*given, "--out", tmp_path / "one"))
    several = ended(torchrun(2, *given, "--out", tmp_path / "several"))
    assert alone.code == several.code == 0, (alone.err, several.err)
    lines = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("one", "several")]
    losses = [[list(json.loads(line)["losses"].values()) for line in run] for run in lines]
    assert len(losses[0]) == len(losses[1]) == 6
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3, atol=1e-4)
    _same(alone, several)
