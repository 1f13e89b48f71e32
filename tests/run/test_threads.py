"""NumPy's threads follow torch's: those that wait for each other spin."""

import numpy  # noqa: F401  (loads the library whose threads are counted)
from threadpoolctl import threadpool_info, threadpool_limits

from paretoda.run.threads import limit_threads


def count_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_numpy_uses_as_many_threads_as_torch_inside_and_as_many_as_before_afterwards():
    with threadpool_limits(2, user_api="blas"):  # not every library takes two where OMP_NUM_THREADS is 1
        before = count_threads()
        assert 2 in before
        with limit_threads("features", None):
            assert count_threads() == {1}
        assert count_threads() == before
