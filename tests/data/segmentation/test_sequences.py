"""Frames of one drive are never on both sides of a split."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretoda.data.batching import split_positions
from paretoda.data.segmentation.build_pair import sequence_name, split_scenes


def frames(counts: list[int]) -> list[str]:
    return [f"city{k}/city{k}_{k:06}_{i:06}_leftImg8bit.png" for k, count in enumerate(counts) for i in range(count)]


def test_what_names_tell() -> None:
    assert sequence_name("aachen/aachen_000123_000019_leftImg8bit.png") == "aachen_000123"
    assert sequence_name("00001.png") is None
    assert sequence_name("0001TP_006690.png") is None


@given(st.lists(st.integers(1, 6), min_size=30, max_size=60), st.integers(0, 5))
def test_whole_sequences_are_held_out(counts: list[int], seed: int) -> None:
    names = frames(counts)
    train, held = split_scenes(names, 0.1, seed, "target")
    assert sorted([*train, *held]) == list(range(len(names)))
    assert not {sequence_name(names[k]) for k in train} & {sequence_name(names[k]) for k in held}
    assert 0.05 * len(names) - 1 <= len(held) <= 0.1 * len(names) + 1
    again = split_scenes(names, 0.1, seed, "target")
    assert np.array_equal(again[1], held)


@pytest.mark.parametrize("seed", range(3))
def test_of_cityscapes_297_images_are_held_out_or_a_few_fewer_that_whole_sequences_leave(seed: int) -> None:
    """10 % of 2,975: 297 or 298. The numbers of its sequences are not known here, so they are drawn."""
    train, held = split_positions(2975, 0.1, seed, "target")
    assert len(held) in (297, 298)
    assert sorted([*train, *held]) == list(range(2975))
    counts = np.random.default_rng(seed).multinomial(2975 - 200, np.full(200, 1 / 200)) + 1
    train, held = split_scenes(frames(counts.tolist()), 0.1, seed, "target")
    assert len(train) + len(held) == 2975
    assert 280 <= len(held) <= 298


def test_another_seed_is_another_split() -> None:
    names = frames([3] * 40)
    assert len({tuple(split_scenes(names, 0.1, seed, "target")[1]) for seed in range(5)}) == 5


def test_a_few_long_sequences_are_split_by_frames() -> None:
    names = frames([50, 50])
    train, held = split_scenes(names, 0.1, 0, "target")
    assert len(held) == 10
    assert np.array_equal(held, split_positions(100, 0.1, 0, "target")[1])
    assert len(train) == 90


def test_other_names_are_shuffled() -> None:
    names = [f"{k:05}.png" for k in range(50)]
    assert np.array_equal(split_scenes(names, 0.1, 3, "target")[1], split_positions(50, 0.1, 3, "target")[1])
    assert len(split_scenes(frames([1] * 20), 0.0, 3, "target")[1]) == 0
