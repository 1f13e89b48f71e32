"""A small pair of domains with a real shift, as arrays and as files."""

import numpy as np
import pytest


def blobs(seed=0, n=200, d=12, k=3, shift=2.0):
    """k classes in d dimensions; the target is rotated a little and moved."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(k, d)) * 2
    y, z = rng.integers(k, size=n), rng.integers(k, size=n)
    x = centres[y] + rng.normal(size=(n, d))
    t = centres[z] + rng.normal(size=(n, d))
    turn = np.linalg.qr(np.eye(d) + 0.3 * rng.normal(size=(d, d)))[0]
    return x.astype(np.float32), y, (t @ turn + shift).astype(np.float32), z


@pytest.fixture
def arrays():
    return blobs()


@pytest.fixture
def files(tmp_path, arrays):
    x, y, t, z = arrays
    classes = np.array(["ant", "bee", "cat"])
    np.savez(tmp_path / "source.npz", x=x, y=y, classes=classes)
    np.savez(tmp_path / "target.npz", x=t)
    np.savez(tmp_path / "labelled.npz", x=t, y=z, classes=classes)
    return tmp_path


SMALL = {
    "steps": 40,
    "batch_size": 16,
    "bottleneck": 8,
    "checkpoint_every": 10,
    "refresh_every": 20,
    "evaluate_every": 20,
    "select": "im",
    "reference": False,
}


@pytest.fixture
def small():
    return dict(SMALL)
