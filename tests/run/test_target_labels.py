"""Runs with a few labels of the target."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from paretoda.api import adapt
from paretoda.errors import DataError, SettingsError
from paretoda.objectives.target_labels import TargetLabels
from paretoda.run.directory.directory import RunDirectory
from paretoda.schemes.linear import Linear
from paretoda.training.step import Step
from paretoda.types import Batch, Model, Objective, Source, Target

CLASSES = ["ant", "bee", "cat"]


@pytest.fixture
def data(arrays):
    x, y, t, z = arrays
    few = np.concatenate([np.flatnonzero(z == label)[:4] for label in range(3)])
    return (x, y, CLASSES), t, (t[few], z[few], CLASSES)


class Watch(Objective):
    """Notes the type of what it is called with."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, source, target):  # noqa: ARG002
        self.seen.append(type(target))
        return target.features.square().mean()


def make_step(objectives, *, lr=0.1):
    torch.manual_seed(0)
    model = Model(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)).double()
    optimiser = torch.optim.SGD(model.parameters(), lr=lr)
    return Step(model, objectives, Linear(), optimiser)


def make_batch(**more):
    generator = torch.Generator().manual_seed(1)
    x, t, few = (torch.randn(n, 4, generator=generator, dtype=torch.float64) for n in (6, 5, 3))
    y, z = torch.arange(6) % 2, torch.tensor([0, 1, 1])
    return Batch(x, y, t, None, torch.arange(6), torch.arange(5), None, labelled=few, target_labels=z, **more)


def test_only_objectives_that_read_labels_get_them():
    watch, few = Watch(), Watch()
    few.reads_labels = True
    make_step({"source": watch, "labels": few})(make_batch())
    assert watch.seen == [Target]
    assert [kind.__name__ for kind in few.seen] == ["LabelledTarget"]
    empty = torch.zeros(1, 2)
    source, target = Source(empty, empty, empty, labels=empty), Target(empty, empty, empty)
    with pytest.raises(TypeError, match="LabelledTarget"):
        TargetLabels(2, 2)(source, target)


def test_the_loss_of_labelled_samples_moves_the_weights_as_the_same_samples_in_the_source_would():
    class SourceLoss(Objective):
        def forward(self, source, target):  # noqa: ARG002
            return torch.nn.functional.cross_entropy(source.logits, source.labels)

    batch = make_batch()
    by_labels = make_step({"source": Watch(), "labels": TargetLabels(3, 2, strength=1)})
    by_source = make_step({"source": Watch(), "labels": SourceLoss()})
    by_labels(batch)
    by_source(replace(batch, source=batch.labelled, labels=batch.target_labels, source_index=torch.arange(3)))
    for one, other in zip(by_labels.model.parameters(), by_source.model.parameters(), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("chosen", "losses", "guides"),
    [
        ({}, True, False),
        ({"guide": "labels"}, False, True),
        ({"guide": "labels", "label_loss": True}, True, True),
        ({"label_loss": False}, False, False),
    ],
)
def test_labels_train_or_guide_as_they_are_asked_to(data, small, chosen, losses, guides):
    source, target, few = data
    small |= {"steps": 6, "dropout": 0.0}
    run = adapt(source, target, target_labels=few, **small, **chosen)
    assert ("labels" in run.history[0]["losses"]) == losses
    assert run.settings.label_loss is losses
    guided = run.history[0]["guide_loss"]
    assert guided is not None
    plain = adapt(source, target, **small).history[0]["guide_loss"]
    assert (guided != plain) == guides


def test_the_model_is_chosen_by_labels_that_train_nothing(data, small):
    source, target, few = data
    del small["select"]
    small |= {"steps": 40, "evaluate_every": 10, "dropout": 0.0}
    run = adapt(source, target, target_labels=few, select="labels", **small)
    assert "labels" in run.history[0]["losses"]
    best = max(run.candidates, key=lambda row: (row["labels"], row["step"]))
    assert run.chosen == best["step"]
    assert run.scores["labels"] == best["labels"] < 0
    guide = adapt(source, target, select="im", **small).history[0]["guide_loss"]
    assert run.history[0]["guide_loss"] == guide  # those that choose do not guide
    alone = adapt(source, target, target_labels=few, select="labels+im", label_loss=False, **small)
    assert "labels" not in alone.history[0]["losses"]
    assert {"labels", "im"} <= set(alone.candidates[0])


def test_labels_help(data, arrays, small):
    source, target, few = data
    turned = target[:, ::-1].copy()  # a target that the source says nothing about
    few = (few[0][:, ::-1].copy(), *few[1:])
    wanted = np.array(CLASSES)[arrays[3]]
    settings = {**small, "method": "source-only", "scaling": "none", "components": 0}
    alone = adapt(source, turned, **settings)
    helped = adapt(source, turned, target_labels=few, **settings)
    scores = [np.mean(np.array(run.predict(turned)) == wanted) for run in (alone, helped)]
    assert scores[1] > scores[0] + 0.2, scores


def test_a_run_is_repeated_from_its_files_and_resumed_to_the_same_bytes(files, small, tmp_path):
    few = np.load(files / "labelled.npz")
    np.savez(files / "few.npz", x=few["x"][:9], y=few["y"][:9], classes=few["classes"])
    names = {"source": files / "source.npz", "target": files / "target.npz", "target_labels": files / "few.npz"}
    adapt(**names, out=tmp_path / "whole", **small)
    _, inputs = RunDirectory(tmp_path / "whole").read_config()
    assert inputs["target_labels"] == str(files / "few.npz")
    assert "9 target samples are labelled: 9 train." in (tmp_path / "whole" / "results.json").read_text()
    card = (tmp_path / "whole" / "README.md").read_text()
    assert "semi-supervised" in card
    assert "a few labelled samples" in card

    def stop(taken, _report):
        if taken == 20:
            raise KeyError("stopped")

    with pytest.raises(KeyError, match="stopped"):
        adapt(**names, out=tmp_path / "stopped", after=[stop], **small)
    adapt(out=tmp_path / "stopped", resume=True)
    assert (tmp_path / "stopped" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


def test_members_share_the_labelled_samples(data, small):
    source, target, few = data
    run = adapt(source, target, target_labels=few, members=2, **{**small, "steps": 4})
    assert "labels" in run.history[0]["losses"]


@pytest.mark.parametrize("scheme", ["paretoda", "paretoda-paper", "mgda", "linear", "metaalign", "auxilearn"])
def test_every_kind_of_scheme_takes_labels(data, small, scheme):
    source, target, few = data
    chosen = {"method": "dann", "target_loss": "mcc" if scheme != "metaalign" else "none", "scheme": scheme}
    if scheme == "metaalign":
        chosen["label_loss"] = False
    run = adapt(source, target, target_labels=few, **{**small, "steps": 4}, **chosen)
    assert len(run.history) == 4


def test_mistakes_are_told_in_one_sentence(data, small):
    source, target, few = data
    with pytest.raises(SettingsError, match="need labelled target samples; give --target-labels"):
        adapt(source, target, guide="labels", **small)
    with pytest.raises(SettingsError, match="need labelled target samples; give --target-labels"):
        adapt(source, target, label_loss=True, **small)
    with pytest.raises(SettingsError, match="selection 'labels' need labelled target samples"):
        adapt(source, target, **{**small, "select": "labels"})
    with pytest.raises(SettingsError, match="give the target as well"):
        adapt(source, target_labels=few, method="source-only", **small)
    with pytest.raises(DataError, match="classes that the model does not know: dog"):
        adapt(source, target, target_labels=(few[0], few[1], ["ant", "bee", "dog"]), **small)
    with pytest.raises(SettingsError, match="strength"):
        adapt(source, target, target_labels=few, options=("labels.strength=-1",), **small)
    with pytest.raises(SettingsError, match="loss_weights has 4 numbers for the losses"):
        adapt(source, target, target_labels=few, scheme="linear", loss_weights=(1, 1, 1, 1), **small)
