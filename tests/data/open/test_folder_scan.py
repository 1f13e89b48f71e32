"""A walk finds what pathlib finds, in its order, and opens nothing."""

import builtins
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.data.open.folders import scan_folder

PART = st.sampled_from(["a", "b", "a b", "a-b", "A", "é", "z.png", ".hidden", "__MACOSX"])
FILES = st.sets(st.lists(PART, min_size=1, max_size=3).map(tuple), max_size=10)


def written(folder: Path, files: set[tuple[str, ...]]) -> None:
    for number, parts in enumerate(sorted(files)):
        path = folder.joinpath(*parts[:-1], f"{parts[-1]}{('.png', '.JPG', '.txt')[number % 3]}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


@given(FILES)
@settings(max_examples=40)
def test_images_are_those_of_pathlib_sorted_by_their_parts(files) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(folder, files)
        every = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
        seen = [path for path in every if not any(part.startswith(".") or part == "__MACOSX" for part in path.parts)]
        images = sorted(path for path in seen if path.suffix.lower() in (".png", ".jpg"))
        for by_class in (False, True):
            found = scan_folder(folder, by_class=by_class)
            assert [Path(image) for image in found.images] == images
        assert scan_folder(folder, by_class=False).others == len(seen) - len(images)


def test_a_folder_linked_into_two_classes_belongs_to_both_but_counts_once_without_classes(tmp_path: Path) -> None:
    (tmp_path / "set" / "a").mkdir(parents=True)
    (tmp_path / "set" / "a" / "1.png").touch()
    (tmp_path / "set" / "b").symlink_to(tmp_path / "set" / "a")
    (tmp_path / "set" / "a" / "up").symlink_to(tmp_path / "set")
    assert scan_folder(tmp_path / "set", by_class=True).images == ["a/1.png", "b/1.png"]
    assert scan_folder(tmp_path / "set", by_class=False).images == ["a/1.png"]


def test_every_folder_is_scanned_once_and_no_file_is_opened(tmp_path: Path, monkeypatch) -> None:
    written(tmp_path, {("a", "1"), ("a", "b", "2"), ("c", "3")})
    scanned = []
    scandir = os.scandir

    def counted(place):
        scanned.append(Path(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", counted)
    monkeypatch.setattr(builtins, "open", pytest.fail)
    scan_folder(tmp_path, by_class=False)
    assert sorted(scanned) == sorted({tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "c"})


def test_a_folder_that_cannot_be_read_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        scan_folder(tmp_path / "nowhere", by_class=False)
