from pathlib import Path

import numpy as np
import pytest
import torch

from paretoda.data import rows
from paretoda.data.open.arrays import make_array_samples
from paretoda.data.open.folders import open_unlabelled_folder
from paretoda.data.rows import iterate_inputs, make_image_rows
from paretoda.data.scaling import fit_z_scores
from paretoda.data.transforms import ImageTransform

TRANSFORM = ImageTransform(16, 3, (0.5,) * 3, (0.5,) * 3, "standard")
PLACES = np.array([3, 0, 3, 2])


def test_images_are_the_same_with_and_without_memory(paint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for k in range(5):
        paint(f"{k}.png", seed=k)
    samples = open_unlabelled_folder(tmp_path)
    keeping = make_image_rows(samples, TRANSFORM)
    monkeypatch.setattr(rows, "_MEMORY", 0)
    forgetting = make_image_rows(samples, TRANSFORM)
    assert len(keeping.cache.kept) == 5
    assert len(forgetting.cache.kept) == 0
    for _ in range(2):
        assert torch.equal(keeping.evaluate(PLACES), forgetting.evaluate(PLACES))
        one, two = (made.train(PLACES, torch.Generator().manual_seed(1)) for made in (keeping, forgetting))
        assert torch.equal(one, two)


def test_an_image_is_decoded_once_where_it_fits_into_memory(paint, tmp_path: Path) -> None:
    for k in range(5):
        paint(f"{k}.png", seed=k)
    kept = make_image_rows(open_unlabelled_folder(tmp_path), TRANSFORM)
    before = kept.evaluate(PLACES)
    for path in tmp_path.glob("[023].png"):
        path.unlink()
    assert torch.equal(kept.evaluate(PLACES), before)


def test_all_samples_come_in_order() -> None:
    x = np.random.default_rng(0).normal(size=(10, 2))
    transform = fit_z_scores(x.astype(np.float32))
    batches = list(iterate_inputs(make_array_samples(x), transform, 4))
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert torch.equal(torch.cat(batches), transform.evaluate(x.astype(np.float32)))


def test_new_images_are_prepared_as_in_the_pair(paint, tmp_path: Path) -> None:
    for k in range(5):
        paint(f"{k}.jpg", seed=k, size=(400, 300))
    samples = open_unlabelled_folder(tmp_path)
    known = make_image_rows(samples, TRANSFORM).evaluate(np.arange(5))
    assert torch.equal(torch.cat(list(iterate_inputs(samples, TRANSFORM, 2))), known)
