import numpy as np

from paretoda.core.seeds import derive_seed


def test_seeds_of_different_keys_differ_and_number_types_do_not_matter() -> None:
    keys = [(0, "a", 1), (0, "a", 2), (1, "a", 1), (0, "b", 1), (2**32, "a", 1)]
    assert len({derive_seed(*key) for key in keys}) == len(keys)
    assert len({derive_seed(s, a, b) for s in range(5) for a in range(5) for b in range(5)}) == 125
    assert derive_seed(np.int64(3), "a") == derive_seed(3, "a")
    assert 0 <= derive_seed(0) < 2**63
