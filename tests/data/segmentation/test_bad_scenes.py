"""What is wrong with a file is said in one sentence that names it."""

from pathlib import Path

import pytest

from paretoda.data.segmentation.opening import open_scenes
from paretoda.errors import DataError


def test_a_missing_partner(write) -> None:
    root = write.camvid()
    (root / "trainannot/0001TP_000001.png").unlink()
    with pytest.raises(DataError, match=r"train/0001TP_000001\.png has no label file .*trainannot/0001TP_000001\.png"):
        open_scenes(root, labelled=True)
    scenes = open_scenes(root, labelled=True, skip_bad=True)
    assert len(scenes) == 3
    assert scenes.notes == ("1 scenes that cannot be read were left out: 0001TP_000001.png.",)


def test_sizes_that_differ(write) -> None:
    root = write.plain()
    write.ids("plain/labels/sub/2.png", [0, 1], size=(12, 9))
    with pytest.raises(DataError, match=r"images/sub/2\.png is 12x8 and its label .*labels/sub/2\.png is 12x9"):
        open_scenes(root, labelled=True)


def test_a_damaged_image_is_named_when_it_is_read(write) -> None:
    root = write.plain()
    file = root / "images/sub/1.png"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(DataError, match=r"images/sub/1\.png is damaged or truncated"):
        open_scenes(root, labelled=True).read(range(4))
    assert len(open_scenes(root, labelled=True, skip_bad=True)) == 3


def test_everything_is_bad(write) -> None:
    root = write.plain(2)
    for file in (root / "images/sub").iterdir():
        file.write_text("no image")
    with pytest.raises(DataError, match=r"none of the 2 scenes can be read; for example, .*0\.png is not an image"):
        open_scenes(root, labelled=True, skip_bad=True)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere does not exist"):
        open_scenes(tmp_path / "nowhere", labelled=False)
    with pytest.raises(DataError, match="has no image files"):
        open_scenes(tmp_path, labelled=False)
    with pytest.raises(DataError, match="has no label maps that are known"):
        open_scenes(tmp_path, labelled=True)
    for name in ("images", "labels"):
        (tmp_path / name).mkdir()
    with pytest.raises(DataError, match="images has no image files"):
        open_scenes(tmp_path, labelled=True)
    with pytest.raises(DataError, match="label maps are missing"):
        open_scenes([1, 2], labelled=True)


@pytest.mark.parametrize("layout", ["gta5", "camvid", "synthia", "plain", "cityscapes"])
def test_a_target_never_touches_labels(write, layout: str) -> None:
    root = write.cityscapes({"ulm_000000": 3}) if layout == "cityscapes" else getattr(write, layout)()
    before = open_scenes(root, labelled=False)
    images, names = before.read(range(len(before))), before.names(range(len(before)))
    spoiled = {"camvid": "trainannot", "synthia": "GT/LABELS", "cityscapes": "gtFine"}.get(layout, "labels")
    for file in (root / spoiled).rglob("*.png"):
        file.write_bytes(b"garbage")
    after = open_scenes(root, labelled=False, skip_bad=True)
    assert after.names(range(len(after))) == names
    assert all((one == two).all() for one, two in zip(images, after.read(range(len(after))), strict=True))
    assert not after.labelled
