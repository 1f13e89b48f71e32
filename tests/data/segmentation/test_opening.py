"""Each layout is recognised, and its labels become the right classes."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from paretoda.data.segmentation.label_tables import CAMVID, CITYSCAPES, SYNTHIA
from paretoda.data.segmentation.opening import check_classes, open_scenes
from paretoda.errors import DataError


def pixels(path: Path) -> NDArray[np.uint8]:
    return np.asarray(Image.open(path))


def test_gta5(write) -> None:
    root = write.gta5(3)
    scenes = open_scenes(root, labelled=True)
    assert scenes.names(range(3)) == ["00001.png", "00002.png", "00003.png"]
    assert (scenes.classes, scenes.colours) == (CITYSCAPES.names, CITYSCAPES.colours)
    assert scenes.sizes([0]) == [(12, 8)]
    for place in range(3):
        assert (scenes.read([place])[0] == pixels(root / f"images/{place + 1:05}.png")).all()
        ids = pixels(root / f"labels/{place + 1:05}.png")
        assert (scenes.read_labels([place])[0] == CITYSCAPES.lookup[ids]).all()
    merged = open_scenes(root, labelled=True, table="cityscapes-as-camvid")
    assert merged.classes == CAMVID.names


def test_gta5_labels_of_slightly_other_size_are_resized(write) -> None:
    root = write.gta5(2)
    write.ids("gta5/labels/00002.png", [7], size=(12 + 16, 8), palette=True)
    assert open_scenes(root, labelled=True).read_labels([1])[0].shape == (8, 12)
    write.ids("gta5/labels/00002.png", [7], size=(12 + 17, 8), palette=True)
    with pytest.raises(DataError, match=r"00002\.png is 12x8 and its label .*00002\.png is 29x8"):
        open_scenes(root, labelled=True)


@pytest.mark.parametrize("ending", ["labelIds", "labelTrainIds"])
def test_cityscapes(write, ending: str) -> None:
    root = write.cityscapes({"aachen_000000": 1, "ulm_000003": 2}, ending=ending)
    write.cityscapes({"munster_000000": 1}, split="val", ending=ending)
    scenes = open_scenes(root, labelled=True)
    names = scenes.names(range(len(scenes)))
    assert names[0] == "aachen/aachen_000000_000000_leftImg8bit.png"
    assert len(names) == 3
    ids = pixels(root / f"gtFine/train/ulm/ulm_000003_000001_gtFine_{ending}.png")
    assert (scenes.read_labels([2])[0] == (CITYSCAPES.lookup[ids] if ending == "labelIds" else ids)).all()
    direct = open_scenes(root / "leftImg8bit/val", labelled=True)
    assert direct.names([0]) == open_scenes(root, labelled=True, split="val").names([0])
    assert open_scenes(root / "leftImg8bit", labelled=False).names(range(3)) == names
    with pytest.raises(DataError, match=r"no folder 'test' \(it has train, val\)"):
        open_scenes(root, labelled=False, split="test")


def test_synthia(write) -> None:
    root = write.synthia()
    scenes = open_scenes(root, labelled=True)
    assert scenes.classes == SYNTHIA.names
    present = {int(cls) for labels in scenes.read_labels(range(3)) for cls in np.unique(labels)}
    assert present == {*(cls for _, cls in SYNTHIA.ids), 255}


def test_camvid(write) -> None:
    root = write.camvid()
    scenes = open_scenes(root, labelled=True, split="test")
    assert scenes.classes == CAMVID.names
    ids = pixels(root / "testannot/0001TP_000002.png")
    assert (scenes.read_labels([2])[0] == np.where(ids == 11, 255, ids)).all()
    assert (open_scenes(root / "test", labelled=True).read_labels([2])[0] == scenes.read_labels([2])[0]).all()
    assert len(open_scenes(root, labelled=False)) == 4


def test_two_folders(write) -> None:
    root = write.plain(classes=3)
    scenes = open_scenes(root, labelled=True)
    assert scenes.classes == ("class 0", "class 1", "class 2")
    assert len(set(scenes.colours)) == 3
    assert "numbered" in scenes.notes[0]
    assert (scenes.read_labels([1])[0] == pixels(root / "labels/sub/1.png")).all()
    (root / "classes.txt").write_text("rock\ntree\nwater\nice\n")
    assert open_scenes(root, labelled=True).classes == ("rock", "tree", "water", "ice")
    (root / "classes.txt").write_text("rock\ntree\n")
    with pytest.raises(DataError, match=r"\.png has the label 2, which is none of the 2 classes"):
        open_scenes(root, labelled=True).read_labels(range(4))


def test_a_list(write, tmp_path: Path) -> None:
    root = write.plain(3)
    (root / "all.txt").write_text("".join(f"images/sub/{k}.png labels/sub/{k}.png\n\n" for k in (2, 0)))
    scenes = open_scenes(root / "all.txt", labelled=True)
    assert scenes.names(range(2)) == ["images/sub/2.png", "images/sub/0.png"]
    assert (scenes.read_labels([1])[0] == pixels(root / "labels/sub/0.png")).all()
    (root / "lists").mkdir()
    (root / "lists/bare.txt").write_text("images/sub/1.png\n")
    assert len(open_scenes(root / "lists/bare.txt", labelled=False)) == 1
    with pytest.raises(DataError, match=r"line 1 of .*bare\.txt has no label file"):
        open_scenes(root / "lists/bare.txt", labelled=True)
    write.image("with a space.png")
    write.ids("its label.png", [0, 1])
    (tmp_path / "spaces.txt").write_text("with a space.png its label.png\n")
    assert open_scenes(tmp_path / "spaces.txt", labelled=True).read_labels([0])[0].max() == 1
    (tmp_path / "wrong.txt").write_text("nothing of that kind\n")
    with pytest.raises(DataError, match=r"line 1 of .*wrong\.txt names no image"):
        open_scenes(tmp_path / "wrong.txt", labelled=False)


def test_an_npz_and_arrays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (5, 6, 7, 3), dtype=np.uint8)
    y = rng.choice(np.array([0, 1, 255], np.uint8), (5, 6, 7))
    np.savez(tmp_path / "a.npz", x=x, y=y, classes=np.array(["sky", "sign_symbol"]))
    scenes = open_scenes(tmp_path / "a.npz", labelled=True)
    assert scenes.classes == ("sky", "sign_symbol")
    assert scenes.colours == (CAMVID.colours[0], CAMVID.colours[6])
    assert (np.stack(scenes.read([3, 1])) == x[[3, 1]]).all()
    assert (np.stack(scenes.read_labels([3, 1])) == y[[3, 1]]).all()
    assert (open_scenes((x, y), labelled=True).read_labels([0])[0] == y[0]).all()
    np.savez(tmp_path / "b.npz", x=x, y=np.where(y == 1, 2, y), classes=np.array(["sky", "sign"]))
    with pytest.raises(DataError, match=r"b\.npz has the label 2"):
        open_scenes(tmp_path / "b.npz", labelled=True)
    np.savez(tmp_path / "c.npz", x=x, y=y[:, :5])
    with pytest.raises(DataError, match=r"c\.npz have the shape \(5, 5, 7\) and the images \(5, 6, 7, 3\)"):
        open_scenes(tmp_path / "c.npz", labelled=True)
    np.savez(tmp_path / "d.npz", x=x)
    with pytest.raises(DataError, match=r"d\.npz has no labels"):
        open_scenes(tmp_path / "d.npz", labelled=True)
    np.savez(tmp_path / "e.npz", x=x, y=np.array([None], dtype=object))
    with pytest.raises(DataError, match=r"e\.npz contains pickled objects"):
        open_scenes(tmp_path / "e.npz", labelled=True)
    np.savez(tmp_path / "f.npz", x=x.reshape(5, -1))
    with pytest.raises(DataError, match=r"f\.npz has features"):
        open_scenes(tmp_path / "f.npz", labelled=False)


def test_any_images_without_labels(write, tmp_path: Path) -> None:
    write.image("wild/a/1.png")
    write.image("wild/2.jpg", size=(20, 10))
    Image.new("L", (5, 4), 9).save(write.path("wild/b/3.png"))
    scenes = open_scenes(tmp_path / "wild", labelled=False)
    assert sorted(scenes.sizes(range(3))) == [(5, 4), (12, 8), (20, 10)]
    assert all(image.ndim == 3 for image in scenes.read(range(3)))
    assert open_scenes(tmp_path / "wild/2.jpg", labelled=False).names([0]) == ["2.jpg"]
    with pytest.raises(DataError, match="opened without labels"):
        scenes.read_labels([0])


def test_different_numbers_of_classes(write) -> None:
    camvid, gta5 = open_scenes(write.camvid(), labelled=True), open_scenes(write.gta5(), labelled=True)
    with pytest.raises(DataError, match=r"source has 19 classes .* target has 11"):
        check_classes(gta5, camvid)
    check_classes(open_scenes(write.root / "camvid", labelled=True, table="camvid-as-cityscapes"), gta5)


@pytest.mark.parametrize("kind", ["files", "arrays"])
def test_opened_scenes_can_be_given_again_and_lose_their_labels_as_a_target(write, kind: str) -> None:
    what = write.camvid() if kind == "files" else (np.zeros((2, 4, 5, 3), np.uint8), np.zeros((2, 4, 5), np.uint8))
    labelled = open_scenes(what, labelled=True)
    assert open_scenes(labelled, labelled=True).labelled
    target = open_scenes(labelled, labelled=False)
    assert not target.labelled
    assert target.names([0, 1]) == labelled.names([0, 1])
    with pytest.raises(DataError, match="opened without labels"):
        target.read_labels([0])
    with pytest.raises(DataError, match="opened without labels"):
        open_scenes(target, labelled=True)
