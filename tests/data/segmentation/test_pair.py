"""A pair of scenes: batches, parts, and a target whose labels nobody can see."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from paretoda.data.segmentation.build_pair import make_scene_pair
from paretoda.data.segmentation.opening import open_scenes
from paretoda.data.segmentation.pair import ScenePair, ScenePairSettings
from paretoda.data.segmentation.transforms import CONVENTIONS
from paretoda.data.segmentation.translation import FourierTranslation
from paretoda.errors import DataError

SETTINGS = ScenePairSettings(batch_size=4, seed=3, least_target=2)
FIELDS = ("source", "labels", "target", "guide", "source_index", "target_index", "guide_index")


def scenes(count: int = 30, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Images whose red value is 60 times the class, and whose blue value is their number."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, (count, 8, 10), dtype=np.uint8)
    x = np.stack([60 * y, 0 * y, np.broadcast_to(np.arange(count, dtype=np.uint8)[:, None, None], y.shape)], axis=3)
    return x, y


def pair_of(settings: ScenePairSettings = SETTINGS, translation=None) -> ScenePair:
    return make_scene_pair(scenes(), scenes(24, seed=1)[0], settings, translation)


def raw(images: Tensor) -> Tensor:
    usual = CONVENTIONS["torchvision"]
    mean, std = (torch.tensor(row).view(3, 1, 1) for row in (usual.mean, usual.std))
    return (images * std + mean) * 255


def test_batches() -> None:
    pair = pair_of()
    batch = pair.batch(0)
    assert batch.source.shape == batch.target.shape == (4, 3, 8, 10)
    assert batch.labels.shape == (4, 8, 10)
    assert batch.labels.dtype == torch.int64
    assert batch.guide is not None
    assert batch.guide.shape == (2, 3, 8, 10)
    assert pair.kind == "segmentation"
    assert pair.input_shape == (3, 8, 10)
    assert len(pair.colours) == len(pair.classes) == 4
    assert pair.batch(0, guide=False).guide is None


def test_a_batch_is_a_pure_function_of_seed_and_step() -> None:
    one, two = pair_of(), pair_of()
    for step in (17, 0, 5):
        left, right = one.batch(step), two.batch(step)
        assert all(torch.equal(getattr(left, name), getattr(right, name)) for name in FIELDS)
    other = pair_of(ScenePairSettings(batch_size=4, seed=4, least_target=2))
    assert not torch.equal(one.batch(0).source, other.batch(0).source)


def test_labels_follow_their_images_and_indices_name_both() -> None:
    pair = pair_of()
    for step in range(20):
        batch = pair.batch(step)
        pixels = raw(batch.source)
        assert torch.equal((pixels[:, 0] / 60).round().long(), batch.labels)
        assert pixels[:, 2, 0, 0].round().tolist() == pair.source_train[batch.source_index].tolist()
        shown = raw(batch.target)[:, 2, 0, 0].round().tolist()
        assert shown == pair.target_train[batch.target_index].tolist()
        assert batch.guide is not None
        held = raw(batch.guide)[:, 2, 0, 0].round().tolist()
        assert held == pair.target_held_out[batch.guide_index].tolist()


def test_the_target_is_the_same_in_every_step() -> None:
    pair = pair_of(ScenePairSettings(batch_size=4, seed=3, least_target=2, scales=(0.5, 1.5)))
    whole = torch.cat(list(pair.inputs("target", 5)))
    sources = torch.cat(list(pair.inputs("source", 5)))
    changed = 0
    for step in range(12):
        batch = pair.batch(step)
        assert torch.equal(batch.target, whole[batch.target_index])
        changed += not torch.equal(batch.source, sources[batch.source_index])
    assert changed == 12


def test_chance_is_new_in_every_step() -> None:
    pair = make_scene_pair(scenes(2), scenes(4)[0], ScenePairSettings(batch_size=1, least_target=2))
    assert len(pair.source_train) == 1
    plain = next(pair.label_maps("source", 1))
    mirrored = [torch.equal(pair.batch(step).labels, plain.flip(-1)) for step in range(20)]
    assert 3 < sum(mirrored) < 17


def test_every_epoch_has_every_sample_once_and_held_out_ones_never() -> None:
    pair = pair_of(ScenePairSettings(batch_size=3, seed=1, least_target=2))
    assert (len(pair.source_train), len(pair.source_held_out)) == (27, 3)
    seen = np.concatenate([pair.batch(step).source_index.numpy() for step in range(9)])
    assert sorted(seen) == list(range(27))
    assert not set(pair.source_train) & set(pair.source_held_out)
    assert not set(pair.target_train) & set(pair.target_held_out)


@pytest.mark.parametrize("layout", ["cityscapes", "camvid"])
def test_no_image_of_training_or_of_the_guide_is_in_the_test_set(write, layout: str) -> None:
    """Neither by its name nor by its bytes, for every seed."""
    if layout == "cityscapes":
        source, tests = write.gta5(), ["val", "test"]
        for split, drives in {"train": {"ulm_000000": 20, "jena_000001": 20}, "val": {"munster_000000": 6}}.items():
            root = write.cityscapes(drives, split=split)
        write.cityscapes({"berlin_000000": 6}, split="test")
    else:
        source = root = write.camvid(24)
        tests = ["val", "test"]
    tested = [open_scenes(root, labelled=True, split=split) for split in tests]
    hashes = {digest for scenes in tested for digest in scenes.digests(range(len(scenes)))}
    every = open_scenes(root, labelled=False)
    for seed in range(5):
        pair = make_scene_pair(source, root, replace(SETTINGS, seed=seed))
        parts = [set(pair.target.samples.digests(pair.positions(part))) for part in ("target", "held-out-target")]
        assert parts[0] | parts[1] == set(every.digests(range(len(every))))
        assert not parts[0] & parts[1]
        assert not (parts[0] | parts[1]) & hashes


def test_parts() -> None:
    pair = pair_of()
    assert [len(pair.positions(part)) for part in ("all-source", "all-target", "held-out-target")] == [30, 24, 2]
    labels = torch.cat(list(pair.label_maps("held-out-source", 2)))
    assert torch.equal(labels, torch.from_numpy(scenes()[1][pair.source_held_out]).long())
    assert sum(len(batch) for batch in pair.inputs("all-source", 7)) == 30
    assert pair.names("held-out-source") == [str(place) for place in pair.source_held_out]
    assert (pair.images("target", [1])[0] == scenes(24, seed=1)[0][pair.target_train[1]]).all()
    assert torch.equal(
        pair.prediction_transform().evaluate(pair.images("target", [1])), next(pair.inputs("target", 2))[1:]
    )
    for part in ("target", "held-out-target", "all-target"):
        with pytest.raises(DataError, match="only the source has"):
            pair.label_maps(part, 2)


def test_frequencies_and_priors_are_of_the_training_part() -> None:
    pair = pair_of()
    y = scenes()[1][pair.source_train]
    assert torch.allclose(pair.source_frequencies(), torch.from_numpy(np.bincount(y.ravel()) / y.size))
    assert pair.source_priors(4, 5).shape == (4, 4, 5)


def test_a_translation_sees_raw_pixels_and_changes_the_source_alone() -> None:
    seen = []

    def brighter(source: Tensor, target: Tensor, generator: torch.Generator) -> Tensor:
        seen.append((source, target, torch.rand((), generator=generator)))
        return source + 10

    plain, changed = pair_of(), pair_of(translation=brighter)
    for step in (0, 1):
        one, two = plain.batch(step), changed.batch(step)
        assert torch.allclose(raw(two.source), raw(one.source) + 10, atol=1e-3)
        assert torch.equal(one.target, two.target)
        assert torch.equal(one.labels, two.labels)
        source, target, _ = seen[-1]
        assert torch.allclose(source, raw(one.source), atol=1e-3)
        assert torch.allclose(target, raw(one.target), atol=1e-3)
    assert seen[0][2] != seen[1][2]
    changed.batch(0)
    assert seen[0][2] == seen[2][2]
    assert torch.equal(next(plain.inputs("source", 3)), next(changed.inputs("source", 3)))
    with pytest.raises(ValueError, match="translation made"):
        pair_of(translation=lambda source, *_: source[:, :1]).batch(0)


def test_a_translation_gets_a_target_of_the_sources_size() -> None:
    settings = ScenePairSettings(batch_size=2, least_target=2, size=(10, 8), source_size=(20, 14))
    pair = pair_of(settings, FourierTranslation(0.1))
    batch = pair.batch(0)
    assert batch.source.shape == (2, 3, 14, 20)
    assert batch.labels.shape == (2, 14, 20)
    assert batch.target.shape == (2, 3, 8, 10)


def test_scenes_that_do_not_fit_into_memory_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = pair_of()
    monkeypatch.setattr("paretoda.data.rows._MEMORY", 100)
    read = pair_of()
    assert len(kept.source.cached_images.kept) == 30
    assert len(read.source.cached_images.kept) == len(read.source.cached_maps.kept) == 0
    assert all(torch.equal(getattr(kept.batch(2), name), getattr(read.batch(2), name)) for name in FIELDS)


def test_spoiled_target_labels_change_nothing(write, tmp_path: Path) -> None:
    source, target = write.camvid(6), write.plain(8, classes=11)
    before = make_scene_pair(source, target, SETTINGS).batch(3)
    for file in (target / "labels").rglob("*.png"):
        file.write_bytes(b"garbage")
    after = make_scene_pair(source, target, SETTINGS).batch(3)
    assert all(torch.equal(getattr(before, name), getattr(after, name)) for name in FIELDS)
    x, y = scenes()
    np.savez(tmp_path / "target.npz", x=x, y=np.array([None], dtype=object))
    assert make_scene_pair((x, y), tmp_path / "target.npz", SETTINGS).target.samples.labelled is False


def test_settings() -> None:
    with pytest.raises(DataError, match="batch size"):
        ScenePairSettings(batch_size=0)
    with pytest.raises(DataError, match="held-out"):
        ScenePairSettings(held_out=0.6)
    with pytest.raises(DataError, match="choose from torchvision, caffe"):
        ScenePairSettings(convention="tf")  # type: ignore[arg-type]
    nothing = pair_of(ScenePairSettings(held_out=0, least_target=2))
    assert nothing.batch(0).guide is None
    assert len(nothing.source_train) == 30
