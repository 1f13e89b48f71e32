import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paretoda.data.batching import split_positions, stratified_split

shares = st.floats(0, 0.5)


@given(st.integers(1, 300), shares, st.integers(0, 99))
def test_the_parts_are_disjoint_and_complete(count: int, share: float, seed: int) -> None:
    train, held = split_positions(count, share, seed, "s")
    assert sorted([*train, *held]) == list(range(count))
    assert len(train) >= 1
    assert abs(len(held) - share * count) <= 1


@given(st.lists(st.integers(0, 6), min_size=1, max_size=200), shares, st.integers(0, 99))
def test_no_class_leaves_the_training_part_and_shares_are_kept(values: list[int], share: float, seed: int) -> None:
    labels = np.array(values)
    train, held = stratified_split(labels, share, seed, "s")
    assert sorted([*train, *held]) == list(range(len(labels)))
    assert set(labels[train]) == set(values)
    wanted = np.bincount(labels) * share
    assert (np.abs(np.bincount(labels[held], minlength=len(wanted)) - wanted) <= 1 + 1e-9).all()


def test_a_tenth_is_a_tenth_and_depends_on_the_seed() -> None:
    labels = np.repeat([0, 1], [60, 40])
    _, held = stratified_split(labels, 0.1, 0, "s")
    assert np.bincount(labels[held]).tolist() == [6, 4]
    assert held.tolist() != stratified_split(labels, 0.1, 1, "s")[1].tolist()
    assert held.tolist() == stratified_split(labels, 0.1, 0, "s")[1].tolist()
    assert len(split_positions(100, 0.1, 0, "s")[1]) == 10
