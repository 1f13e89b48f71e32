"""Real image files of every kind."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

Paint = Callable[..., Path]


def picture(seed: int = 0, size: tuple[int, int] = (32, 24)) -> Image.Image:
    """An RGB image of width x height with some structure."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)


@pytest.fixture
def paint(tmp_path: Path) -> Paint:
    """Writes an image below tmp_path, and returns where."""

    def write(name: str, seed: int = 0, size: tuple[int, int] = (32, 24)) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(seed, size).save(path)
        return path

    return write


@pytest.fixture
def two_folders(paint: Paint, tmp_path: Path) -> tuple[Path, Path]:
    """A source of 2 classes x 12 images and a target of 24 images in sub-folders, 32x24."""
    for k in range(24):
        paint(f"source/{'cat' if k % 2 else 'dog'}/{k:02}.png", seed=k)
        paint(f"target/{'x' if k % 3 else 'y'}/{k:02}.png", seed=100 + k)
    return tmp_path / "source", tmp_path / "target"
