"""One seed for every use of chance, derived from the run's seed and a key: to resume a run needs no saved generator."""

from __future__ import annotations

import hashlib


def derive_seed(*key: int | str) -> int:
    """A 63-bit seed for this key; different keys have unrelated seeds."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, key)).encode()).digest()[:8], "little") >> 1
