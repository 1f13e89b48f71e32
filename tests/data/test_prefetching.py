"""Reading ahead changes when things are done, and nothing else."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.data.prefetching import Reading, prefetch, prefetch_batches, spare_cores
from paretoda.errors import DataError


def reading_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("paretoda-reading")]


@given(st.lists(st.integers(), max_size=20), st.integers(0, 4))
@settings(max_examples=40)
def test_results_come_in_the_order_of_the_items(items, workers) -> None:
    assert list(prefetch(lambda item: item * 2, items, workers)) == [item * 2 for item in items]
    assert not reading_threads()


@given(st.integers(0, 100), st.integers(1, 80), st.integers(0, 3))
@settings(max_examples=40)
def test_batches_are_the_same_whoever_makes_them(count, batch_size, workers) -> None:
    places = np.random.default_rng(count).permutation(count)
    found = list(prefetch_batches(torch.from_numpy, places, batch_size, workers))
    assert [rows.tolist() for rows in found] == [
        places[start : start + batch_size].tolist() for start in range(0, count, batch_size)
    ]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_an_error_is_raised_where_its_result_would_have_come(workers) -> None:
    wrong = DataError("x.jpg is damaged")

    def work(item: int) -> int:
        if item == 5:
            raise wrong
        return item

    results = prefetch(work, range(100), workers)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(DataError) as caught:
        next(results)
    assert caught.value is wrong
    assert not reading_threads()


@pytest.mark.parametrize("workers", [1, 3])
def test_no_more_than_one_item_a_thread_and_another_is_read_ahead(workers) -> None:
    asked = []

    def items():
        for item in range(50):
            asked.append(item)
            yield item

    results = prefetch(lambda item: item, items(), workers)
    for taken in range(1, 20):
        next(results)
        assert len(asked) <= taken + workers
    results.close()
    assert not reading_threads()


def test_work_is_done_beside_who_waits_for_it() -> None:
    both = threading.Barrier(2, timeout=60)
    assert len(list(prefetch(lambda _: both.wait(), range(8), 2))) == 8, "two threads must have met four times"


def test_the_trainers_own_number_of_threads_stays() -> None:
    found = []

    def trains() -> None:  # in a thread that never asked for its number before: then it takes over what was set last
        torch.set_num_threads(2)
        results = prefetch(lambda _: torch.get_num_threads(), range(5), 2)
        found.extend([next(results), torch.get_num_threads(), next(results), torch.get_num_threads()])
        results.close()
        found.append(torch.get_num_threads())

    before = torch.get_num_threads()
    for target in (trains, lambda: found.append(torch.get_num_threads())):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    torch.set_num_threads(before)
    assert found == [1, 2, 1, 2, 2, 2]


def test_processes_of_one_machine_share_its_cores(monkeypatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    for processes, left in (("1", 7), ("2", 3), ("8", 0), ("99", 0), ("many", 7)):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", processes)
        assert spare_cores() == left
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.delenv("LOCAL_WORLD_SIZE")
    assert spare_cores() == 8
    assert Reading().threads(files=True) == 8
    assert Reading().threads(files=False) == 0
    assert Reading(3).threads(files=False) == 3
    with pytest.raises(DataError, match="-1 workers"):
        Reading(-1)
