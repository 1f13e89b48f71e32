"""The averaged teacher: its weights are an exponential moving average, and nothing is trained through it."""

import numpy as np
import pytest
import torch
from torch import nn

from paretoda import adapt
from paretoda.objectives import CrossEntropy, MeanTeacher
from paretoda.schemes import Linear
from paretoda.training.step import Step
from paretoda.training.teacher import Teacher
from paretoda.types import Batch, Model

CLASSES = ["ant", "bee", "cat"]


def make_model():
    return Model(nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5)), nn.Linear(6, 3))


def make_step(**changes):
    torch.manual_seed(0)
    model = make_model()
    objectives = {"source": CrossEntropy(6, 3), "target": MeanTeacher(6, 3, confidence=0.0)}
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    given = {"scheme": Linear(), "bn": "per-domain", "teacher": Teacher(model), **changes}
    return Step(model, objectives, optimiser=optimiser, **given)


def make_batch(size=8):
    index = torch.arange(size)
    return Batch(torch.randn(size, 4), index % 3, torch.randn(size, 4) + 1, None, index, index, None)


def test_the_weights_are_a_moving_average_that_begins_as_a_mean():
    model = make_model()
    teacher, seen, decay = Teacher(model, decay=0.75), [], 0.75
    for _ in range(8):
        for parameter in model.parameters():
            nn.init.normal_(parameter)
        model.encoder[1].running_mean.normal_()
        seen.append(model.head.weight.detach().clone())
        teacher.follow(model)
    wanted = torch.stack(seen[:4]).mean(0)  # 1 - 1/t is at most 0.75 until the fourth step
    for weight in seen[4:]:
        wanted = decay * wanted + (1 - decay) * weight
    assert torch.allclose(teacher.model.head.weight, wanted, atol=1e-6)
    assert torch.equal(teacher.model.encoder[1].running_mean, model.encoder[1].running_mean)
    with pytest.raises(ValueError, match="from 0 to below 1"):
        Teacher(model, decay=1.0)


def test_the_teacher_predicts_without_dropout_and_has_no_gradient():
    step, batch = make_step(), make_batch()
    before = {name: tensor.clone() for name, tensor in step.teacher.state_dict().items()}
    assert torch.equal(step.teacher(batch.target), step.teacher(batch.target))
    step(batch)
    assert all(parameter.grad is None for parameter in step.teacher.parameters())
    after = step.teacher.state_dict()
    assert torch.equal(after["model.head.weight"], step.model.head.weight)  # after one step it is the model
    assert not torch.equal(after["model.head.weight"], before["model.head.weight"])


def test_what_is_learned_from_the_teacher_is_the_weighted_cross_entropy_to_its_labels():
    step, batch = make_step(), make_batch()
    step.model.encoder[2].p = 0.0
    probabilities = step.teacher(batch.target)
    statistics = step.model.encoder[1].running_mean.clone()
    view = step.view(batch)
    largest, labels = probabilities.max(1)
    wanted = nn.functional.cross_entropy(view.target.logits, labels)
    assert torch.allclose(view.losses["target"], wanted, atol=1e-6)
    assert len(view.features) == 3  # source, target, and the lesson
    moved = step.model.encoder[1].running_mean - statistics
    mean = step.model.encoder[0](batch.target).mean(0) - statistics
    assert torch.allclose(moved, 0.1 * mean, atol=1e-6)  # the target alone, once, moves the running statistics
    lesson = MeanTeacher(6, 3, confidence=float(largest.median())).lesson(batch, probabilities)
    assert lesson.weights.tolist() == (largest >= largest.median()).float().tolist()


def test_steps_that_cannot_have_a_teacher_say_so():
    with pytest.raises(ValueError, match="follows a teacher: give the step one"):
        make_step(teacher=None)
    with pytest.raises(ValueError, match="leave out --accumulate"):
        make_step(accumulate=2)
    with pytest.raises(NotImplementedError, match="CrossEntropy follows no teacher"):
        CrossEntropy(6, 3).lesson(make_batch(), torch.ones(8, 3))
    step = make_step()
    with pytest.raises(TypeError, match="call it with a TaughtTarget"):
        step.objectives["target"](*step.domains(make_batch()))


def test_a_run_follows_a_teacher_and_is_resumed_to_the_same_bytes(tmp_path):
    rng = np.random.default_rng(0)
    y, z = np.arange(90) % 3, np.arange(90) % 3
    x = (rng.normal(size=(90, 6)) + 3 * np.eye(6)[y]).astype(np.float32)
    x_target = (rng.normal(size=(90, 6)) + 3 * np.eye(6)[z] + 0.5).astype(np.float32)
    settings = {"target_loss": "mean-teacher", "steps": 12, "batch_size": 16, "evaluate_every": 4, "refresh_every": 4}
    settings |= {
        "options": ["target.confidence=0.5"],
        "checkpoint_every": 4,
        "reference": False,
        "bottleneck": 8,
        "device": "cpu",
    }
    whole = adapt((x, y, CLASSES), x_target, tmp_path / "whole", **settings)

    def stop(taken, _report):
        if taken == 7:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        adapt((x, y, CLASSES), x_target, tmp_path / "part", after=[stop], **settings)
    again = adapt((x, y, CLASSES), x_target, tmp_path / "part", resume=True)
    assert list(whole.history[0]["losses"]) == ["source", "alignment", "target"]
    names = ("model.safetensors", "predictions.csv")
    assert all((tmp_path / "whole" / name).read_bytes() == (tmp_path / "part" / name).read_bytes() for name in names)
    assert again.model.classes == tuple(CLASSES)
    other = adapt((x, y, CLASSES), x_target, teacher_decay=0.0, **settings)
    assert not torch.equal(other.last.model.head.weight, whole.last.model.head.weight)
