"""A kept index gives what a scan gives, or is not used."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from paretoda.data.open import folders as index_cache
from paretoda.data.open.folders import (
    open_labelled_folder,
    open_unlabelled_folder,
    scan_folder,
    scan_with_cache,
)
from paretoda.io.cache import cache_folder

FILES = ("a/1.png", "a/2.jpg", "b/deep/1.png", "b/notes.txt", "stray.png")


def age(folder: Path) -> None:
    """Let every folder have been changed an hour ago."""
    then = time.time() - 3600
    for place, _, _ in os.walk(folder):
        os.utime(place, (then, then))


@pytest.fixture
def data(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(index_cache, "_WORTH", 1)
    monkeypatch.setenv("PARETODA_CACHE", str(tmp_path / "cache"))
    for name in FILES:
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    age(tmp_path / "data")
    return tmp_path / "data"


def kept() -> list[Path]:
    return sorted((cache_folder() / "index").glob("*"))


def same(folder: Path) -> bool:
    """Whether the index tells what a scan tells."""
    return all(
        vars(scan_with_cache(folder, by_class=how)) == vars(scan_folder(folder, by_class=how)) for how in (True, False)
    )


@pytest.mark.parametrize("by_class", [True, False])
def test_the_second_time_nothing_is_scanned(data: Path, by_class: bool, monkeypatch) -> None:
    first = scan_with_cache(data, by_class=by_class)
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", lambda *_: pytest.fail("it was scanned again"))
        again = scan_with_cache(data, by_class=by_class)
    assert vars(again) == vars(first)
    assert len(kept()) == 1


def test_samples_from_the_index_are_those_of_a_scan(data: Path) -> None:
    for opened in (open_labelled_folder, open_unlabelled_folder):
        for _ in range(2):
            cached, fresh = opened(data, cached=True), opened(data)
            assert cached.paths.names() == fresh.paths.names()
            assert cached.notes == fresh.notes
    assert len(kept()) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda data: (data / "a" / "3.png").touch(),
        lambda data: (data / "b" / "deep" / "1.png").unlink(),
        lambda data: (data / "a" / "1.png").rename(data / "a" / "9.png"),
        lambda data: (data / "c").mkdir(),
        lambda data: (data / "b").rename(data.parent / "moved"),
    ],
    ids=["added", "removed", "renamed", "new folder", "folder gone"],
)
def test_a_change_of_any_folder_is_noticed(data: Path, change) -> None:
    assert same(data)
    change(data)
    assert same(data)


def test_a_folder_that_has_just_changed_is_not_kept(data: Path) -> None:
    (data / "a" / "3.png").touch()
    assert same(data)
    assert not kept()


def test_a_damaged_index_is_as_good_as_none_and_is_made_again(data: Path) -> None:
    scan_with_cache(data, by_class=True)
    file = kept()[0]
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        broken = bytearray(whole)
        broken[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        file.write_bytes(broken)
        assert same(data)
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        assert same(data)
        assert file.read_bytes() != whole[:length]


def test_an_index_is_never_unpickled(data: Path) -> None:
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("it was unpickled",)

    scan_with_cache(data, by_class=True)
    np.savez(kept()[0], facts=np.array([Bomb()], dtype=object), images=np.array([Bomb()], dtype=object))
    assert same(data)


def test_a_cache_that_cannot_be_written_changes_nothing(data: Path, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("PARETODA_CACHE", str(tmp_path / "file" / "cache"))
    assert same(data)


def test_the_index_can_be_switched_off_and_small_folders_have_none(data: Path, monkeypatch) -> None:
    scan_with_cache(data, by_class=True, cached=False)
    assert not kept()
    monkeypatch.setattr(index_cache, "_WORTH", len(FILES))
    scan_with_cache(data, by_class=True)
    assert not kept()


def test_names_that_are_no_text_survive(data: Path) -> None:
    (data / "a" / "caf\udce9.png").touch()
    (data / "d\udce9").mkdir()
    (data / "d\udce9" / "1.png").touch()
    age(data)
    assert same(data)
    assert same(data)
    assert kept()
