import shutil
from pathlib import Path

import numpy as np
import pytest

from paretoda.data.open.folders import find_images, open_labelled_folder, open_unlabelled_folder
from paretoda.errors import DataError


def digests(samples):
    return samples.digests(range(len(samples)))


def test_sub_folders_are_classes_and_deeper_ones_are_not(paint, tmp_path: Path) -> None:
    paint("dog/1.png")
    paint("dog/old/deep/2.png")
    paint("Bär und Co/3.png")
    samples = open_labelled_folder(tmp_path)
    assert samples.labels is not None
    assert samples.labels.classes == ("Bär und Co", "dog")
    assert samples.names(range(3)) == ["Bär und Co/3.png", "dog/1.png", "dog/old/deep/2.png"]
    assert samples.labels.values.tolist() == [0, 1, 1]


def test_hidden_files_and_other_files_are_no_images(paint, tmp_path: Path) -> None:
    paint("a/1.png")
    paint("b/1.JPG")
    for other in ("a/.DS_Store", "a/._1.png", ".git/x.png", "__MACOSX/a/1.png", "a/Thumbs.db", "a/notes.txt"):
        (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / other).write_text("no image")
    images, others = find_images(tmp_path)
    assert [path.name for path in images] == ["1.png", "1.JPG"]
    assert others == 2
    assert len(open_labelled_folder(tmp_path)) == len(open_unlabelled_folder(tmp_path)) == 2
    assert "2 files that are no images" in open_unlabelled_folder(tmp_path).notes[0]


def test_links_are_followed_but_not_in_circles(paint, tmp_path: Path) -> None:
    paint("elsewhere/1.png")
    (tmp_path / "data" / "a").mkdir(parents=True)
    (tmp_path / "data" / "b").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data" / "a" / "up").symlink_to(tmp_path / "data")
    assert len(open_unlabelled_folder(tmp_path / "data")) == 1


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    for opened in (open_labelled_folder, open_unlabelled_folder):
        with pytest.raises(DataError, match="no image files"):
            opened(tmp_path)


def test_images_without_class_folders_are_no_labelled_set(paint, tmp_path: Path) -> None:
    paint("1.png")
    with pytest.raises(DataError, match="images but no labels"):
        open_labelled_folder(tmp_path)


def test_what_is_left_out_of_a_labelled_folder_is_said(paint, tmp_path: Path) -> None:
    paint("a/1.png")
    paint("stray.png")
    (tmp_path / "nothing").mkdir()
    notes = " ".join(open_labelled_folder(tmp_path).notes)
    assert "no classes: nothing" in notes
    assert "1 images outside" in notes


def test_moving_files_between_sub_folders_changes_no_unlabelled_set(paint, tmp_path: Path) -> None:
    # Names that occur in every class, as in Office-31, and equal sizes: only the content can tell them apart.
    for k, cls in enumerate("abc"):
        paint(f"one/{cls}/frame_1.bmp", seed=k)
        paint(f"one/{cls}/frame_2.bmp", seed=10 + k)
    shutil.copytree(tmp_path / "one" / "a", tmp_path / "two" / "z")
    shutil.copytree(tmp_path / "one" / "b", tmp_path / "two" / "y")
    shutil.copytree(tmp_path / "one" / "c", tmp_path / "two" / "x" / "deep")
    one, two = open_unlabelled_folder(tmp_path / "one"), open_unlabelled_folder(tmp_path / "two")
    assert digests(one) == digests(two)
    for left, right in zip(one.read(range(6)), two.read(range(6)), strict=True):
        assert np.array_equal(left, right)
    assert one.names(range(6)) != two.names(range(6))


def test_a_name_that_is_no_text_can_still_be_written(paint, tmp_path: Path) -> None:
    source = paint("a/1.png")
    source.rename(Path(str(tmp_path / "a" / "caf\udce9.png")))
    samples = open_unlabelled_folder(tmp_path)
    assert samples.names([0])[0].encode("utf-8").decode() == "a/caf\ufffd.png"
    assert len(samples.read([0])) == 1
