"""Several sources: batches, losses, scaling and files of each, or all of them pooled."""

import numpy as np
import pytest
import torch
from run.conftest import SMALL, blobs
from torch.nn import functional

from paretoda.api import adapt
from paretoda.data import PairSettings, make_pair
from paretoda.errors import DataError, SettingsError
from paretoda.objectives import Coral, Mcc, Propagation
from paretoda.run.build import build_step
from paretoda.run.directory.directory import RunDirectory
from paretoda.schemes import Linear
from paretoda.tasks import find_task
from paretoda.tasks.classification.build import make_pair_settings
from paretoda.tasks.loading import reopen_inputs
from paretoda.tasks.settings import make_settings
from paretoda.types import Target

CLASSES = ["ant", "bee", "cat"]
QUICK = {"steps": 6, "batch_size": 16, "bottleneck": 8, "select": "last", "reference": False}
FILES = ("model.safetensors", "metrics.jsonl", "predictions.csv", "results.json", "model.json")


def domains():
    """Two sources whose classes have different orders, and a target."""
    x, y, t, _ = blobs()
    other = 2 - y[:90]  # the classes in the opposite order
    return [(x[:110], y[:110], CLASSES), (x[:90] + 3, other, CLASSES[::-1])], t


def weights(run):
    return {name: tensor.numpy() for name, tensor in run.last.model.state_dict().items()}


def assert_same(one, other):
    for name, tensor in weights(one).items():
        np.testing.assert_array_equal(tensor, weights(other)[name])


def test_a_list_of_one_source_is_that_source():
    (first, _), t = domains()
    assert_same(adapt([first], t, **QUICK), adapt(first, t, **QUICK))


def test_pooled_sources_are_their_concatenation():
    sources, t = domains()
    (x, y, _), (other, turned, _) = sources
    whole = np.concatenate([x, other]), np.concatenate([y, 2 - turned]), CLASSES
    pooled = adapt(sources, t, sources="pooled", **QUICK)
    assert_same(pooled, adapt(whole, t, **QUICK))
    assert list(pooled.history[0]["losses"]) == ["source", "alignment", "target", "propagation"]


def test_a_batch_has_as_many_samples_of_each_source_by_turns_and_knows_whose_they_are():
    sources, t = domains()
    pair = make_pair(sources, t, PairSettings(batch_size=8, class_balanced=False))
    batch = pair.batch(3)
    assert batch.domain.tolist() == [0, 1] * 8
    assert batch.source.shape == (16, 12)
    assert batch.target.shape == (8, 12)
    places = pair.source_train[batch.source_index.numpy()]
    assert ((places >= 110) == batch.domain.numpy()).all()
    assert batch.labels.tolist() == pair.labels[places].tolist()
    assert pair.labels.tolist() == [*sources[0][1], *(2 - sources[1][1])]
    seen = [pair.batch(step).source_index[1::2] for step in range(10)]  # 80 of the 81 of the second source
    assert len(torch.cat(seen).unique()) == 80
    balanced = make_pair(sources, t, PairSettings(batch_size=6, class_balanced=True)).batch(0)
    for number in range(2):
        assert balanced.labels[balanced.domain == number].bincount().tolist() == [2, 2, 2]


def test_each_source_has_its_own_scaling_and_held_out_share():
    sources, t = domains()
    pair = make_pair(sources, t, PairSettings())
    for number, block in enumerate(pair.source_blocks(pair.source_train)):
        rows = pair.source.evaluate(block)
        torch.testing.assert_close(rows.mean(0), torch.zeros(12), atol=1e-5, rtol=0)
        torch.testing.assert_close(rows.std(0, correction=0), torch.ones(12), atol=1e-4, rtol=0)
        raw = sources[number][0][block - 110 * number]
        torch.testing.assert_close(pair.transforms[number].evaluate(raw), rows)
    assert [len(block) for block in pair.source_blocks(pair.source_held_out)] == [11, 9]
    pooled = make_pair(sources, t, PairSettings(sources="pooled"))
    torch.testing.assert_close(pooled.source.evaluate(pooled.source_train).mean(0), torch.zeros(12), atol=1e-5, rtol=0)
    assert pooled.domain is None


def step_of(**given):
    sources, t = domains()
    settings = make_settings({**QUICK, "dropout": 0.0, **given})
    pair = make_pair(sources, t, make_pair_settings(settings))
    return build_step(find_task("classification"), settings, pair, torch.device("cpu")), pair


@pytest.mark.parametrize("chosen", [(), (1.0, 0.3, 0.5)])
def test_separate_sources_under_linear_lower_the_sum_of_the_losses_written_by_hand(chosen):
    step, pair = step_of(scheme="linear", method="coral", target_loss="mcc", loss_weights=chosen)
    assert list(step.objectives) == ["source-1", "alignment-1", "source-2", "alignment-2", "target"]
    batch = pair.batch(0)
    step.model.train()
    step.weigh(step.view(batch), step.scheme)
    found = [parameter.grad.clone() for parameter in step.model.encoder.parameters()]
    own, align, target_weight = chosen or (1.0, 1.0, 1.0)
    features = step.model.encoder(torch.cat([batch.source, batch.target]))
    source, target = features[:32], features[32:]
    total = target_weight * Mcc(8, 3)(None, find_target(step, target))
    for number in range(2):
        rows, labels = source[number::2], batch.labels[number::2]
        total = total + own * functional.cross_entropy(step.model.head(rows), labels)
        total = total + align * 100 * coral_by_hand(rows, target)
    wanted = torch.autograd.grad(total, list(step.model.encoder.parameters()))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def find_target(step, features):
    return Target(features, step.model.head(features), torch.arange(len(features)))


def coral_by_hand(one, other):
    return (torch.cov(one.T) - torch.cov(other.T)).square().sum() / (4 * one.shape[1] ** 2)


def test_a_name_of_a_loss_means_that_loss_of_every_source():
    step, _ = step_of(scheme="linear", loss_weights=(1, 0.3, 0.5, 2), head_losses=("source",))
    assert step.scheme == Linear((1, 0.3, 1, 0.3, 0.5, 2))
    assert step.head_losses == ("source-1", "source-2")
    assert isinstance(step.objectives["propagation"], Propagation)
    step, _ = step_of(method="coral", options=("alignment.strength=3",))
    aligned = [step.objectives[f"alignment-{number}"].objective for number in (1, 2)]
    assert all(isinstance(part, Coral) and part.strength == 3 for part in aligned)
    assert aligned[0] is not aligned[1]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"method": "source-only"}, "source-1 source-2"),
        ({"method": "m3sda"}, "source-1 source-2 alignment target propagation"),
        ({"method": "mme"}, "source-1 source-2 alignment target propagation"),
        ({"method": "mdan"}, "source target propagation"),
        ({"joined": True}, "source-1 source-2 target propagation"),
        ({"method": "mcd", "options": ("alignment.encoder_updates=2",), "target_loss": "none"}, None),
        ({"scheme": "pga"}, None),
        ({"scheme": "auxilearn"}, None),
        ({"scheme": "hypernetwork"}, None),
        ({"scheme": "metaalign", "options": ("scheme.train=alignment-2", "scheme.test=source-1")}, None),
        ({"accumulate": 2, "bn": "per-domain"}, None),
        ({"members": 2, "calibrate": True}, None),
        ({"class_balanced": True, "scaling": "source", "label_smoothing": 0.1, "method": "gsp"}, None),
    ],
)
def test_what_else_can_be_set_trains(given, names):
    sources, t = domains()
    run = adapt(sources, t, **{**QUICK, "steps": 3}, **given)
    assert np.isfinite([list(line["losses"].values()) for line in run.history]).all()
    assert names is None or " ".join(run.history[0]["losses"]) == names


def test_what_cannot_be_is_refused_in_one_sentence():
    sources, t = domains()
    with pytest.raises(SettingsError, match=r"harmonises one source loss .*--sources pooled"):
        adapt(sources, t, scheme="gh++", **QUICK)
    with pytest.raises(SettingsError, match="'m3sda' aligns all sources at once; leave out --joined"):
        adapt(sources, t, method="m3sda", joined=True, **QUICK)
    with pytest.raises(SettingsError, match=r"scheme\.train=NAME"):
        adapt(sources, t, scheme="metaalign", **QUICK)
    with pytest.raises(SettingsError, match="several sources are not for segmentation; give one --source"):
        adapt(["A", "B"], "T", task="segmentation")
    with pytest.raises(SettingsError, match="--sources: only for --task classification"):
        adapt("A", "T", task="segmentation", sources="pooled")
    with pytest.raises(SettingsError, match="give a source and a target"):
        adapt([], t)


def test_sources_that_do_not_fit_together_are_refused_with_what_differs():
    ((x, y, _), second), t = domains()
    with pytest.raises(DataError, match=r"source 2 lacks cat and has dog besides, compared with .* source 1"):
        adapt([(x, y, CLASSES), (x, y, ["ant", "bee", "dog"])], t, **QUICK)
    with pytest.raises(DataError, match="source 2 has 11 features, source 1 has 12; give all sources the same"):
        adapt([(x, y, CLASSES), (x[:, :11], y, CLASSES)], t, **QUICK)
    with pytest.raises(DataError, match="source 2 is images, source 1 is features"):
        adapt([(x, y, CLASSES), (np.zeros((110, 8, 8), np.uint8), y, CLASSES)], t, **QUICK)
    with pytest.raises(DataError, match="source 2: the array has no labels"):
        adapt([second, x], t, **QUICK)
    with pytest.raises(DataError, match="every class of source 2 has a single sample"):
        adapt([second, (x[:3], np.arange(3), CLASSES)], t, **QUICK)


def test_sources_without_a_target_are_scaled_together():
    sources, _ = domains()
    run = adapt(sources, method="source-only", **QUICK)
    assert list(run.history[0]["losses"]) == ["source-1", "source-2"]
    assert np.array_equal(run.model.transform.mean, run.source_models[1].transform.mean)


def test_images_of_several_sources_train(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(24) % 3
    sources = [(rng.integers(0, 255, size=(24, side, side)).astype(np.uint8), y) for side in (10, 12)]
    run = adapt(sources, sources[1][0], tmp_path / "run", accumulate=2, **{**QUICK, "batch_size": 8, "steps": 2})
    assert len(run.source_models) == 2
    assert len(run.history) == 2
    assert any("8" in note or "12" in note for note in run.sentences)


def write(folder):
    sources, t = domains()
    paths = [folder / f"{number}.npz" for number in (1, 2)]
    for path, (x, y, classes) in zip(paths, sources, strict=True):
        np.savez(path, x=x, y=y, classes=np.array(classes))
    np.savez(folder / "target.npz", x=t)
    return paths, folder / "target.npz"


def test_a_run_that_was_cut_off_ends_with_the_same_bytes_and_knows_its_sources(tmp_path):
    class Killed(BaseException):
        pass

    def kill(taken, _report):
        if taken == 27:
            raise Killed

    sources, target = write(tmp_path)
    adapt(sources, target, tmp_path / "whole", **SMALL)
    with pytest.raises(Killed):
        adapt(sources, target, tmp_path / "cut", after=[kill], **SMALL)
    adapt(out=tmp_path / "cut", resume=True)
    for file in FILES:
        assert (tmp_path / "cut" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    directory = RunDirectory(tmp_path / "cut")
    assert directory.read_config()[1]["source"] == [str(path) for path in sources]
    assert "alignment-2" in directory.report.read_text()
    assert "- source 2: 2" in directory.card.read_text()
    assert reopen_inputs(directory, torch.device("cpu")).pair.source_count == 2


def test_sources_in_memory_must_be_given_again(tmp_path):
    sources, t = domains()
    adapt(sources, t, tmp_path / "run", **QUICK)
    (tmp_path / "run" / "model.safetensors").unlink()
    with pytest.raises(SettingsError, match="the source of this run was in memory"):
        adapt(out=tmp_path / "run", resume=True)


def test_a_finished_run_with_several_sources_can_begin_another_one(tmp_path):
    sources, target = write(tmp_path)
    adapt(sources, target, tmp_path / "first", **QUICK)
    given = {name: value for name, value in QUICK.items() if name != "bottleneck"}
    run = adapt(None, target, from_run=str(tmp_path / "first"), **given)
    assert "source-1" not in run.history[0]["losses"]


def test_labelled_target_samples_train_beside_several_sources():
    sources, t = domains()
    run = adapt(sources, t, target_labels=(t[:6], np.arange(6) % 3, CLASSES), **QUICK)
    assert list(run.history[0]["losses"])[-1] == "labels"
