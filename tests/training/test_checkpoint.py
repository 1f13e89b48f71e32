"""A damaged checkpoint is noticed, whatever bit is wrong, and the one before it takes its place, which is said."""

import random

import pytest
import torch
from training.networks import network_batch, network_step

from paretoda.schemes.gradnorm import GradNorm
from paretoda.training.checkpoint import (
    CheckpointError,
    has_checkpoint,
    previous_path,
    read_checkpoint,
    restore_step,
    save_checkpoint,
    step_state,
)


def trained(steps=3):
    step = network_step(GradNorm())
    for _ in range(steps):
        step(network_batch())
    return step


def same(one, two):
    """Whether two states are equal bit for bit."""
    if isinstance(one, torch.Tensor):
        return isinstance(two, torch.Tensor) and torch.equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(same, one, two))
    return one == two


@pytest.fixture
def two(tmp_path):
    """A checkpoint and the one before it."""
    path, step = tmp_path / "last.pt", trained()
    save_checkpoint(path, step, 3, {"note": 1})
    step(network_batch())
    save_checkpoint(path, step, 4, {"note": 2})
    return path


def test_a_flipped_bit_is_noticed_or_harmless(two):
    good, older = read_checkpoint(two), read_checkpoint(previous_path(two))
    assert (good["taken"], older["taken"]) == (4, 3)
    data, chance = two.read_bytes(), random.Random(1)
    places = [*(chance.randrange(8 * len(data)) for _ in range(150)), *range(8 * len(data) - 8 * 60, 8 * len(data), 7)]
    noticed = 0
    for place in places:
        wrong = bytearray(data)
        wrong[place // 8] ^= 1 << place % 8
        two.write_bytes(wrong)
        said = []
        state = read_checkpoint(two, said.append)
        noticed += bool(said)
        assert same(state, older if said else good), place
    assert noticed > len(places) / 3


def test_a_flipped_bit_of_a_weight_is_said(two):
    data = bytearray(two.read_bytes())
    place = data.index(bytes(read_checkpoint(two)["modules"]["model.head.weight"].numpy().tobytes()[:64]))
    data[place] ^= 1
    two.write_bytes(data)
    silent = torch.load(two, weights_only=True)["modules"]["model.head.weight"]
    assert not torch.equal(silent, read_checkpoint(previous_path(two))["modules"]["model.head.weight"]), (
        "torch does not notice"
    )
    said = []
    assert read_checkpoint(two, said.append)["taken"] == 3
    assert len(said) == 1
    assert said[0].startswith("The last checkpoint is damaged (last.pt: the checksum of ")
    assert said[0].endswith("the run continues from the one before it, after step 3.")


def test_cut_anywhere_it_falls_back_and_without_a_second_it_is_one_sentence(two):
    data = two.read_bytes()
    for size in [*range(0, len(data), max(1, len(data) // 60)), len(data) - 1]:
        two.write_bytes(data[:size])
        said = []
        assert read_checkpoint(two, said.append)["taken"] == 3, size
        assert len(said) == 1
    previous_path(two).write_bytes(b"")
    with pytest.raises(
        CheckpointError, match=r"no checkpoint can be read \(last.pt: .*; last-previous.pt: .*overwrite"
    ):
        read_checkpoint(two)
    two.unlink()
    previous_path(two).unlink()
    assert not has_checkpoint(two)
    with pytest.raises(CheckpointError, match="there is none at"):
        read_checkpoint(two)


def test_a_write_that_fails_leaves_both_earlier_checkpoints(two, monkeypatch):
    before = two.read_bytes(), previous_path(two).read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("paretoda.training.checkpoint.sync_file", full)
    with pytest.raises(OSError, match="No space") as caught:
        save_checkpoint(two, trained(), 5)
    assert caught.value.filename == str(two)
    assert (two.read_bytes(), previous_path(two).read_bytes()) == before
    assert sorted(path.name for path in two.parent.iterdir()) == ["last-previous.pt", "last.pt"]


def test_a_state_put_back_undoes_a_step(tmp_path):
    import copy

    step = trained()
    before = copy.deepcopy(step_state(step, 3))
    step(network_batch())
    assert not same(step_state(step, 3), before)
    assert restore_step(step, before) == 3
    assert same(step_state(step, 3), before)
    save_checkpoint(tmp_path / "a.pt", step, 3)
    assert has_checkpoint(tmp_path / "a.pt")
