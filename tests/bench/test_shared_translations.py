"""The rows of a bench that would train the same CycleGAN train it once, and their results are those of training it."""

import signal
import subprocess
import sys
import time

import pytest
import torch

from paretoda.bench.contenders import Contender, RunSpec
from paretoda.bench.execute import SHARED, execute_run
from paretoda.bench.suites import SUITES
from paretoda.tasks.segmentation import translation
from paretoda.tasks.suites import Part, Suite, SuiteTask

QUICK = {"task": "segmentation", "steps": 2, "batch_size": 2, "evaluate_every": 1, "device": "cpu"}
SHORT = ("translation.steps=2", "translation.patch=32")
SUM = {**QUICK, "method": "cycada", "target_loss": "none", "scheme": "linear"}
PARETO = {**QUICK, "method": "cycada+tcm", "scheme": "paretoda"}


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    settings = {"task": "segmentation", "size": "48x36"}
    parts = Part("driving/1/0", 6), Part("driving/0/1", 20), Part("driving/0/2", 3)
    tasks = {
        "there": SuiteTask(parts[0], parts[1], settings, parts[2]),
        "elsewhere": SuiteTask(Part("driving/1/3", 6), parts[1], settings, parts[2]),
    }
    monkeypatch.setitem(SUITES, "tiny", Suite("tiny", tasks, measure="miou", task="segmentation"))


@pytest.fixture
def trained(monkeypatch):
    """The number of steps of every CycleGAN that was trained."""
    found, train = [], translation.train_cyclegan

    def count(source, target, steps, *rest):
        found.append(steps)
        return train(source, target, steps, *rest)

    monkeypatch.setattr(translation, "train_cyclegan", count)
    return found


def row(bench, settings, options=SHORT, seed=0, task="there"):
    spec = RunSpec("tiny", task, Contender("one", {**settings, "options": list(options)}), seed)
    found = execute_run(spec, None, bench / "data")
    return {name: value for name, value in found.items() if name != "seconds"}


@pytest.mark.parametrize("semantic", ["false", "true"])
def test_rows_share_the_cyclegan_and_get_the_results_of_training_it(tmp_path, trained, semantic):
    options = (*SHORT, f"translation.semantic={semantic}")
    alone = [row(tmp_path / name, settings, options) for name, settings in (("sum", SUM), ("pareto", PARETO))]
    assert len(trained) == 2
    assert [row(tmp_path / "bench", settings, options) for settings in (SUM, PARETO)] == alone
    assert len(trained) == 3


def test_another_seed_task_size_or_plan_is_another_cyclegan(tmp_path, trained):
    row(tmp_path, SUM)
    row(tmp_path, SUM, seed=1)
    row(tmp_path, SUM, task="elsewhere")
    row(tmp_path, {**SUM, "size": "40x36"})
    row(tmp_path, {**SUM, "held_out": 0.3})
    row(tmp_path, SUM, ["translation.steps=3", "translation.patch=32"])
    row(tmp_path, SUM, ["translation.steps=2", "translation.patch=16"])
    assert trained == [2, 2, 2, 2, 2, 3, 2]
    assert len(list((tmp_path / SHARED).iterdir())) == 7
    row(tmp_path, {**SUM, "lr": 1e-4, "backbone": "dilated", "augment": "none"})
    assert len(trained) == 7


def test_with_semantic_consistency_the_source_network_counts_too(tmp_path, trained):
    options = (*SHORT, "translation.semantic=true")
    row(tmp_path, SUM, options)
    row(tmp_path, {**SUM, "lr": 1e-4}, options)
    assert len(trained) == 2


def test_a_run_whose_files_are_kept_has_a_copy(tmp_path):
    spec = RunSpec("tiny", "there", Contender("one", {**SUM, "options": list(SHORT)}), 0, keep=True)
    execute_run(spec, None, tmp_path / "data")
    (shared,) = (tmp_path / SHARED).glob("*/*.safetensors")
    (own,) = (tmp_path / "runs").glob("*/translation.safetensors")
    assert own.read_bytes() == shared.read_bytes()


WORKER = """
import sys, time
from pathlib import Path
import torch
from paretoda.models.cyclegan import CycleGan
from paretoda.tasks.segmentation import translation

folder, seconds = Path(sys.argv[1]), float(sys.argv[2])

def train():
    torch.manual_seed(0)
    print("training", flush=True)
    time.sleep(seconds)
    return CycleGan()

print("ready", flush=True)
gan = translation._train_once(folder, train)
print(float(sum(parameter.double().sum() for parameter in gan.parameters())), flush=True)
"""


def start(folder, seconds):
    return subprocess.Popen([sys.executable, "-c", WORKER, folder, str(seconds)], stdout=subprocess.PIPE, text=True)


def test_a_process_that_finds_it_being_trained_waits_for_it(tmp_path):
    first = start(tmp_path / "one", 3)
    assert [first.stdout.readline() for _ in range(2)] == ["ready\n", "training\n"]
    second = start(tmp_path / "one", 0)
    assert second.stdout.readline() == "ready\n"
    ends = [process.communicate(timeout=60)[0] for process in (first, second)]
    assert ends[0] == ends[1]  # one number: the second has trained nothing
    assert float(ends[0])


def test_a_process_that_is_killed_while_it_trains_leaves_the_work_to_the_next(tmp_path):
    first = start(tmp_path / "one", 60)
    assert [first.stdout.readline() for _ in range(2)] == ["ready\n", "training\n"]
    second = start(tmp_path / "one", 0)
    assert second.stdout.readline() == "ready\n"
    time.sleep(0.2)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)
    assert second.communicate(timeout=60)[0].startswith("training\n")
    assert second.returncode == 0


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "translation.safetensors").write_bytes(b"no tensors")
    with pytest.raises(translation.RunError, match="remove it"):
        translation._train_once(tmp_path, torch.nn.Identity)
