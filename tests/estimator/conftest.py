"""Two small domains of three classes, and settings that take a fraction of a second."""

from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def small():
    return {"steps": 6, "bottleneck": 8, "batch_size": 16, "select": "last", "reference": False}


@pytest.fixture
def toy():
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(3, 5))
    ys, yt = np.arange(90) % 3, np.arange(60) % 3
    xs = centres[ys] + rng.normal(size=(90, 5))
    xt = centres[yt] + rng.normal(size=(60, 5)) + 2
    order = rng.permutation(150)
    return SimpleNamespace(
        xs=xs,
        ys=ys,
        xt=xt,
        yt=yt,
        x=np.concatenate([xs, xt])[order],
        y=np.concatenate([ys, np.full(60, -1)])[order],
        truth=np.concatenate([ys, yt])[order],
        domain=np.concatenate([np.full(90, 1), np.full(60, -2)])[order],
    )
