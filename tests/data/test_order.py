import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paretoda.data.batching import balanced_order, endless_order

seeds = st.integers(0, 2**70)


@given(seeds, st.integers(1, 30), st.integers(0, 200), st.integers(1, 80))
def test_an_endless_order_is_a_function_of_position(seed: int, size: int, start: int, count: int) -> None:
    whole = endless_order(seed, "s", size, 0, start + count)
    assert endless_order(seed, "s", size, start, count).tolist() == whole[start:].tolist()


@given(seeds, st.integers(1, 20), st.integers(1, 5))
def test_every_epoch_has_every_sample_once(seed: int, size: int, epochs: int) -> None:
    row = endless_order(seed, "s", size, 0, size * epochs).reshape(epochs, size)
    assert (np.sort(row) == np.arange(size)).all()


@given(seeds, st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 50), st.integers(1, 60))
def test_a_balanced_order_takes_each_group_once_per_round(seed: int, sizes: list[int], start: int, count: int) -> None:
    ends = np.cumsum(sizes)
    groups = [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    rounds = (start + count) // len(groups) + 1
    whole = balanced_order(seed, "s", groups, 0, rounds * len(groups))
    owner = np.searchsorted(ends, whole, side="right").reshape(rounds, len(groups))
    assert (np.sort(owner) == np.arange(len(groups))).all()
    assert balanced_order(seed, "s", groups, start, count).tolist() == whole[start : start + count].tolist()
    for k, group in enumerate(groups):  # and each group has epochs of its own
        mine = whole[owner.ravel() == k]
        full = len(mine) // len(group) * len(group)
        assert (np.sort(mine[:full].reshape(-1, len(group))) == group).all()
