"""Two domains are checked against each other, and the user is told what was done to them."""

import numpy as np
import pytest

from paretoda.data.errors import DataError
from paretoda.data.segmentation.making import make_scene_pair
from paretoda.data.segmentation.settings import ScenePairSettings

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
