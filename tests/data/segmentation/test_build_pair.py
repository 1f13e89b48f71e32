"""Two domains are checked against each other, and the user is told what was done to them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paretoda.data.batching import split_positions
from paretoda.data.segmentation.build_pair import make_scene_pair
from paretoda.data.segmentation.pair import ScenePairSettings
from paretoda.errors import DataError

SETTINGS = ScenePairSettings(batch_size=4, seed=3, least_target=2)


def test_sizes_and_notes(write) -> None:
    pair = make_scene_pair(write.gta5(6), write.cityscapes({"ulm_000000": 5, "jena_000001": 3}), SETTINGS)
    assert pair.settings.batch_size == 4
    assert pair.input_shape == (3, 8, 12)
    assert pair.notes == ()
    smaller = ScenePairSettings(batch_size=40, size=(9, 9), least_target=2)
    notes = make_scene_pair(write.root / "gta5", write.root / "cityscapes", smaller).notes
    assert notes[0].startswith("The batch size is lowered from 40 to ")
    assert notes[1] == "The source's images (12x8) are resized to 9x9, which changes their proportions."


def test_mismatches(write) -> None:
    with pytest.raises(DataError, match=r"source has 19 classes .* target has 11"):
        make_scene_pair(write.gta5(), write.camvid(), SETTINGS)
    merged = ScenePairSettings(source_table="cityscapes-as-camvid", least_target=2)
    assert make_scene_pair(write.root / "gta5", write.root / "camvid", merged).classes[0] == "sky"
    with pytest.raises(DataError, match="the target has 4 images; collect at least 20"):
        make_scene_pair(write.root / "camvid", write.root / "camvid")
    x = np.zeros((4, 5, 6, 3), np.uint8)
    with pytest.raises(DataError, match="a single class"):
        make_scene_pair((x, x[..., 0]), x, SETTINGS)


@given(st.sets(st.integers(0, 11)), st.integers(0, 20), st.sampled_from([0.0, 0.1, 0.4]))
@example(set(split_positions(12, 0.4, 7, "split-source")[0].tolist()), 7, 0.4)
@example(set(split_positions(12, 0.4, 7, "split-source")[1].tolist()), 7, 0.4)
def test_both_parts_of_the_source_have_a_label_whichever_images_have_none(labelled, seed, held_out) -> None:
    x = np.zeros((12, 4, 5, 3), np.uint8)
    y = np.full((12, 4, 5), 255, np.uint8)
    y[sorted(labelled), 2, 3] = 1
    settings = ScenePairSettings(batch_size=2, seed=seed, held_out=held_out, least_target=2)
    if len(labelled) < (2 if held_out else 1):
        words = r"only \d+ of the source has labelled pixels" if labelled else "no pixel of the source has a label"
        with pytest.raises(DataError, match=words):
            make_scene_pair((x, y, ["a", "b"]), x, settings)
        return
    pair = make_scene_pair((x, y, ["a", "b"]), x, settings)
    usual = make_scene_pair((x, y * 0, ["a", "b"]), x, settings)
    assert sorted([*pair.source_train, *pair.source_held_out]) == list(range(12))
    parts = [(pair.source_train, usual.source_train), (pair.source_held_out, usual.source_held_out)]
    for ours, theirs in parts:
        assert ours.tolist() == sorted(ours)
        assert len(ours) == len(theirs)
        assert len(set(ours) - set(theirs)) <= 1, "at most one image changes its place"
        assert not len(ours) or set(ours) & labelled
    if all(set(theirs) & labelled for _, theirs in parts if len(theirs)):
        assert all(np.array_equal(*part) for part in parts), "and none where it need not"
