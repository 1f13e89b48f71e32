import os
import time
from pathlib import Path

import pytest

from paretoda.data.open.files import check_samples
from paretoda.data.open.folders import open_labelled_folder, open_unlabelled_folder
from paretoda.errors import DataError


def digests(samples):
    return samples.digests(range(len(samples)))


@pytest.fixture
def with_a_bad_one(paint, tmp_path: Path) -> Path:
    for k in range(3):
        paint(f"a/{k}.png", seed=k)
        paint(f"b/{k}.png", seed=10 + k)
    bad = tmp_path / "a" / "1.png"
    bad.write_bytes(bad.read_bytes()[:-30])
    return tmp_path


def test_a_bad_file_stops_and_is_named(with_a_bad_one: Path) -> None:
    with pytest.raises(DataError, match=r"a/1\.png is damaged .*--skip-bad"):
        check_samples(open_labelled_folder(with_a_bad_one), skip_bad=False, progress=None)


def test_bad_files_are_left_out_when_asked_with_their_labels(with_a_bad_one: Path) -> None:
    calls: list[tuple[int, int]] = []
    samples = check_samples(
        open_labelled_folder(with_a_bad_one), skip_bad=True, progress=lambda _, done, total: calls.append((done, total))
    )
    assert samples.names(range(5)) == ["a/0.png", "a/2.png", "b/0.png", "b/1.png", "b/2.png"]
    assert samples.labels is not None
    assert samples.labels.values.tolist() == [0, 0, 1, 1, 1]
    assert "1 unreadable image files were left out: a/1.png" in samples.notes[0]
    assert calls[-1] == (6, 6)


def test_nothing_but_bad_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "1.png").write_text("x")
    with pytest.raises(DataError, match="none of the 1 image files"):
        check_samples(open_unlabelled_folder(tmp_path), skip_bad=True, progress=None)


def test_the_digests_follow_the_content(paint, tmp_path: Path) -> None:
    paint("a/1.png", seed=1)
    paint("a/2.png", seed=2)
    before = digests(open_unlabelled_folder(tmp_path))
    assert before == digests(open_unlabelled_folder(tmp_path))
    paint("a/2.png", seed=3)
    assert before != digests(open_unlabelled_folder(tmp_path))


def test_shapes_come_from_headers(paint, tmp_path: Path) -> None:
    paint("1.png", size=(7, 5))
    assert open_unlabelled_folder(tmp_path).shapes() == [(5, 7, 3)]


def test_a_file_is_hashed_again_only_if_it_has_changed(paint, tmp_path: Path, monkeypatch) -> None:
    path = paint("a/1.png", seed=1)
    before = digests(open_unlabelled_folder(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", lambda _: pytest.fail("it was read again"))
        assert digests(open_unlabelled_folder(tmp_path)) == before
    known = path.stat()
    time.sleep(0.02)  # more than one tick of the file system's clock
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert path.stat().st_size == known.st_size
    assert digests(open_unlabelled_folder(tmp_path)) != before


def test_a_file_that_is_gone_is_named(paint, tmp_path: Path) -> None:
    path = paint("a/1.png")
    samples = open_unlabelled_folder(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match=r"1\.png does not exist; correct the path"):
        digests(samples)
