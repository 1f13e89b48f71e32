"""Seeded splits into a training part and a held-out part."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paretoda.core.chance import derived_seed
from paretoda.data.order import Places


def split(count: int, share: float, seed: int, stream: str) -> tuple[Places, Places]:
    """Training and held-out positions, both sorted; at least one is held out unless the share is 0."""
    order = np.random.default_rng(derived_seed(seed, stream)).permutation(count)
    held = _held(count, share)
    return np.sort(order[held:]), np.sort(order[:held])


def stratified_split(labels: NDArray[np.int64], share: float, seed: int, stream: str) -> tuple[Places, Places]:
    """The same share of every class is held out, as nearly as possible, and no class leaves the training part."""
    counts = np.bincount(labels)
    wanted = counts * share
    held = np.floor(wanted).astype(np.int64)  # at most half of a class, never all of it
    missing = _held(len(labels), share) - held.sum()
    for cls in np.argsort(held - wanted, kind="stable"):  # the largest remainders first
        if missing > 0 and held[cls] < counts[cls] - 1:
            held[cls] += 1
            missing -= 1
    out = np.zeros(len(labels), dtype=bool)
    for cls in np.flatnonzero(held):
        places = np.flatnonzero(labels == cls)
        order = np.random.default_rng(derived_seed(seed, stream, int(cls))).permutation(len(places))
        out[places[order[: held[cls]]]] = True
    return np.flatnonzero(~out), np.flatnonzero(out)


def _held(count: int, share: float) -> int:
    return min(max(1, round(share * count)), count - 1) if share > 0 else 0
