"""Members: each follows the run that it would be alone, and together they survive checkpoints."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch

from paretoda.errors import SettingsError
from paretoda.models.ensemble import MeanHead
from paretoda.objectives.target.propagation import Propagation
from paretoda.run.build import build_step
from paretoda.run.callbacks import NO_CALLBACKS
from paretoda.tasks import find_task
from paretoda.tasks.settings import make_settings
from paretoda.training.checkpoint import restore_step, step_state
from paretoda.training.members import member_snapshot
from paretoda.training.snapshot import take_snapshot

torch.set_num_threads(1)
CPU = torch.device("cpu")
TASK = find_task("classification")


def _data(seed=0):
    rng = np.random.default_rng(seed)
    centres = 2 * rng.normal(size=(3, 20))
    y = np.arange(150) % 3
    x = centres[y] + rng.normal(size=(150, 20))
    z = centres[np.arange(120) % 3] + rng.normal(size=(120, 20)) + 0.7
    return (x.astype(np.float32), y), z.astype(np.float32)


def _open(**values):
    settings = make_settings({"batch_size": 16, "steps": 40, "components": 8, **values})
    source, target = _data()
    inputs = TASK.open(settings, source, target, CPU, NO_CALLBACKS)
    return settings, inputs.pair


def _train(step, pair, settings, first, last, dtype=torch.float32):
    """The steps of `paretoda.run.train`, without what surrounds them."""
    for number in range(first, last):
        step.advance(number / settings.steps)
        step.refresh(lambda: take_snapshot(pair, step.model, CPU), due=number % 10 == 0)
        step.seed(settings.seed, number)
        batch = pair.batch(number, guide=step.wants_guide)
        step(replace(batch, **{k: _as(v, dtype) for k, v in vars(batch).items()}))


def _as(tensor, dtype):
    return tensor.to(dtype) if tensor is not None and tensor.is_floating_point() else tensor


def _double(step, pairs):
    for pair in pairs:
        for rows in (pair.source, pair.target):
            object.__setattr__(rows, "scaled", rows.scaled.double())
    step.modules().double()


@pytest.mark.parametrize("scheme", ["linear", "paretoda", "mgda"])
def test_twenty_steps_of_a_member_are_those_of_its_own_run(scheme):
    settings, pair = _open(members=3, scheme=scheme, target_loss="tcm")
    together = build_step(TASK, settings, pair, CPU)
    _double(together, [pair])
    _train(together, pair, settings, 0, 20, torch.float64)
    for index in range(3):
        own, own_pair = _open(seed=index, split_seed=0, scheme=scheme, target_loss="tcm")
        alone = build_step(TASK, own, own_pair, CPU)
        _double(alone, [own_pair])
        _train(alone, own_pair, own, 0, 20, torch.float64)
        member = together.steps[index].modules().state_dict()
        for name, tensor in alone.modules().state_dict().items():
            torch.testing.assert_close(member[name], tensor, rtol=0, atol=1e-8, msg=lambda m, n=name: f"{n}: {m}")


def test_the_gradients_of_one_step_are_those_of_its_own_run():
    settings, pair = _open(members=2)
    together = build_step(TASK, settings, pair, CPU)
    _train(together, pair, settings, 0, 1)
    own, own_pair = _open(seed=1, split_seed=0, members=1)
    alone = build_step(TASK, own, own_pair, CPU)
    _train(alone, own_pair, own, 0, 1)
    pairs = zip(together.steps[1].model.parameters(), alone.model.parameters(), strict=True)
    assert max(float((a.grad - b.grad).abs().max()) for a, b in pairs) <= 1e-5


def test_members_differ_but_hold_out_the_same_samples():
    settings, pair = _open(members=2)
    together = build_step(TASK, settings, pair, CPU)
    one, other = together.steps
    assert not torch.equal(one.model.head.weight, other.model.head.weight)
    first, second = together.pairs
    assert np.array_equal(first.source_held_out, second.source_held_out)
    assert not torch.equal(first.batch(0).source_index, second.batch(0).source_index)


def test_a_member_sees_its_own_features_and_logits_of_the_whole_sets():
    settings, pair = _open(members=2)
    step = build_step(TASK, settings, pair, CPU)
    whole = take_snapshot(pair, step.model, CPU)
    assert isinstance(step.model.head, MeanHead)
    for index, member in enumerate(step.steps):
        wanted = take_snapshot(pair, member.model, CPU)
        seen = member_snapshot(whole, index, member.model)
        for name in ("source", "held_out_source", "target", "held_out_target"):
            torch.testing.assert_close(getattr(seen, name).features, getattr(wanted, name).features)
            torch.testing.assert_close(getattr(seen, name).logits, getattr(wanted, name).logits)


def test_members_follow_one_vote_on_their_mean_prediction():
    settings, pair = _open(members=3)
    together = build_step(TASK, settings, pair, CPU)
    _train(together, pair, settings, 0, 15)
    one, *others = (step.objectives["propagation"] for step in together.steps)
    assert one.wanted().sum() > 0
    assert all(torch.equal(one.wanted(), other.wanted()) for other in others)
    snapshot = take_snapshot(pair, together.model, CPU)
    for step in together.steps:
        step.objectives["propagation"].refresh(member_snapshot(snapshot, 0, together.steps[0].model))
    own = one.wanted().clone()
    together.refresh(lambda: snapshot, due=True)
    assert not torch.equal(one.wanted(), own)  # the vote of all is not that of the first
    alone = Propagation(256, 3)
    alone.load_state_dict(one.state_dict())
    alone.refresh(snapshot)
    assert torch.equal(alone.wanted(), one.wanted())


def test_a_restored_step_goes_on_as_if_it_had_not_stopped():
    settings, pair = _open(members=2)
    straight = build_step(TASK, settings, pair, CPU)
    _train(straight, pair, settings, 0, 10)
    state = step_state(straight, 10)
    resumed = build_step(TASK, settings, pair, CPU)
    restore_step(resumed, torch.load(_saved(state), weights_only=True))
    _train(straight, pair, settings, 10, 17)
    _train(resumed, pair, settings, 10, 17)
    for name, tensor in straight.modules().state_dict().items():
        assert torch.equal(resumed.modules().state_dict()[name], tensor), name


def _saved(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return file


def test_what_has_no_members_says_so():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, size=(40, 16, 16), dtype=np.uint8)
    settings = make_settings({"members": 2, "batch_size": 8})
    inputs = TASK.open(settings, (images, np.arange(40) % 2), images, CPU, NO_CALLBACKS)
    with pytest.raises(SettingsError, match="--members is for feature data"):
        build_step(TASK, settings, inputs.pair, CPU)
    with pytest.raises(SettingsError, match="leave out --members"):
        make_settings({"members": 2, "scheme": "hypernetwork"})
    with pytest.raises(SettingsError, match="only for --task classification"):
        make_settings({"members": 2, "task": "segmentation"})
