"""NumPy's threads follow torch's: those that wait for each other spin."""

import numpy  # noqa: F401  (loads the library whose threads are counted)
from threadpoolctl import threadpool_info

from paretoda.run.threads import limit_threads


def count_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_numpy_uses_as_many_threads_as_torch_inside_and_as_many_as_before_afterwards():
    before = count_threads()
    assert before
    with limit_threads("features", 2):
        assert count_threads() == {2}
        with limit_threads("features", None):
            assert count_threads() == {1}
        assert count_threads() == {2}
    assert count_threads() == before
