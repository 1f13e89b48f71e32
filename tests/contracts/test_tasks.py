"""What every task keeps: its tables are real, its runs can be trained, saved, loaded, averaged and exported."""

import numpy as np
import pytest
import torch

from paretoda import adapt
from paretoda.errors import RunError, SettingsError
from paretoda.run.build import build_step
from paretoda.run.directory.directory import RunDirectory
from paretoda.run.directory.model_files import read_task
from paretoda.run.task import PredictOptions, Task
from paretoda.tasks import TASKS, find_task
from paretoda.tasks.loading import load_ensemble, load_run, reopen_inputs
from paretoda.tasks.settings import make_settings

CPU = torch.device("cpu")
QUICK = {"steps": 2, "evaluate_every": 1, "device": "cpu", "reference": False}


def classified():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    return (rng.normal(size=(60, 5)).astype(np.float32) + labels[:, None], labels), rng.normal(size=(60, 5)).astype(
        np.float32
    )


def segmented():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (24, 24, 32, 3), dtype=np.uint8)
    return (images, rng.integers(0, 3, (24, 24, 32), dtype=np.uint8), ["a", "b", "c"]), images[::-1].copy()


def valued():
    (source, labels), target = classified()
    return (source, 100 + 10 * source[:, 0] + labels), target


DATA = {"classification": classified, "segmentation": segmented, "regression": valued}


def outputs_of(predictor, inputs):
    """Probabilities, or what a task without classes predicts."""
    try:
        return predictor.predict_proba(inputs)
    except RunError:
        return predictor.predict(inputs)


@pytest.fixture(scope="module", params=list(TASKS))
def task(request):
    assert request.param in DATA, "a new task needs data here"
    return find_task(request.param)


@pytest.fixture(scope="module")
def run(task, tmp_path_factory):
    source, target = DATA[task.name]()
    return adapt(source, target, tmp_path_factory.mktemp(task.name) / "run", task=task.name, **QUICK)


def test_it_is_a_task_under_its_own_name(task):
    assert isinstance(task, Task)
    assert find_task(task.name) is task


def test_its_defaults_are_settings_that_it_accepts(task):
    settings = make_settings({"task": task.name})
    assert settings.task == task.name
    for name, value in task.defaults({}).items():
        assert getattr(settings, name) == value


@pytest.mark.parametrize("table", ["methods", "target_losses", "guides", "schemes", "validators", "backbones"])
def test_no_table_is_empty(task, table):
    assert len(getattr(task.tables, table)) > 0


def test_an_unknown_name_is_refused_with_the_nearest_one(task):
    with pytest.raises(SettingsError, match="there is no method"):
        make_settings({"task": task.name, "method": "nothing"})


def test_settings_of_another_task_are_refused(task):
    foreign = {
        "classification": {"class_balanced": True},
        "segmentation": {"levels": 2},
        "regression": {"source_loss": "huber"},
    }
    for other, setting in foreign.items():
        if other != task.name:
            with pytest.raises(SettingsError, match=f"only for --task {other}$"):
                make_settings({"task": task.name, **setting})


def test_two_steps_of_one_seed_have_the_same_weights(task):
    settings = make_settings({"task": task.name, **QUICK})
    pair = task.open(settings, *DATA[task.name](), CPU).pair
    one, other = (build_step(task, settings, pair, CPU).model.state_dict() for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_is_loaded_as_it_was_saved(task, run):
    target = DATA[task.name]()[1]
    found, predictor = load_run(run.directory, CPU)
    assert found is task
    assert read_task(RunDirectory(run.directory).description) == task.name
    assert predictor.classes == run.classes
    for one, other in zip(outputs_of(predictor, target[:3]), outputs_of(run, target[:3]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(run.predict(target[:3])) == 3


def test_the_mean_of_a_run_with_itself_is_the_run(task, run):
    target = DATA[task.name]()[1][:2]
    _, mean = load_ensemble([run.directory, run.directory], CPU)
    for one, other in zip(outputs_of(mean, target), outputs_of(run, target), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    with pytest.raises(RunError, match="not a model of its own"):
        mean.save(run.directory / "a", run.directory / "b")


def test_data_in_memory_cannot_be_opened_again(run):
    assert reopen_inputs(RunDirectory(run.directory), CPU) is None


def test_a_predictor_without_options_is_itself(task, run):
    assert task.apply_options(run.model, PredictOptions()) is run.model


def test_the_files_that_a_user_is_sent_to_are_there(task, run):
    usage = task.usage(RunDirectory(run.directory), run.model)
    assert usage.predictions.exists()
    assert task.card(run.model).classes == run.classes


def test_the_exported_module_computes_what_the_predictor_does(task, run):
    program = task.make_program(run.model, transforms=False, refined=False)
    raw = program.draw_raw(2, program.raw_size, seed=0)
    found = dict(zip(program.output_names, program.module(program.inputs(raw)), strict=True))
    for name, wanted in program.predict(raw).items():
        np.testing.assert_allclose(found[name].numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_runs_of_two_tasks_have_no_mean(tmp_path):
    runs = [adapt(*DATA[name](), tmp_path / name, task=name, **QUICK).directory for name in TASKS]
    with pytest.raises(RunError, match="only runs of one task have a mean"):
        load_ensemble(runs, CPU)


def test_a_task_that_does_not_exist_is_refused():
    with pytest.raises(SettingsError, match="there is no task"):
        adapt(*classified(), task="ranking")
