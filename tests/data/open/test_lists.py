from pathlib import Path

import pytest

from paretoda.data.open.lists import open_list, split_line
from paretoda.errors import DataError


@pytest.mark.parametrize(
    ("line", "path", "label"),
    [
        ("a.jpg 3", "a.jpg", "3"),
        ("a.jpg", "a.jpg", None),
        ("my photo 3.jpg 5", "my photo 3.jpg", "5"),
        ("my photo 3.jpg", "my photo 3.jpg", None),
        ("a b.JPG   dog  ", "a b.JPG", "dog"),
        ("a b.png\tpolar bear", "a b.png", "polar bear"),
        ("images/0001 12", "images/0001", "12"),
        ("images/0001", "images/0001", None),
        ("übung/図.png 0", "übung/図.png", "0"),
    ],
)
def test_a_line_is_a_path_and_perhaps_a_label(tmp_path: Path, line: str, path: str, label: str | None) -> None:
    assert split_line(line, tmp_path) == (path, label)


def test_a_name_with_a_space_and_no_suffix_is_a_path_where_it_exists(tmp_path: Path) -> None:
    (tmp_path / "photo 7").touch()
    assert split_line("photo 7", tmp_path) == ("photo 7", None)


def test_paths_are_relative_to_the_list_or_to_the_root(paint, tmp_path: Path) -> None:
    paint("data/x/a b.png", seed=1)
    paint("data/x/c.png", seed=2)
    text = "x/a b.png 7\r\n\r\nx/c.png 3\r\n"
    for file, root in ((tmp_path / "data" / "list.txt", None), (tmp_path / "list.txt", tmp_path / "data")):
        file.write_text("\ufeff" + text, encoding="utf-8")
        samples = open_list(file, labelled=True, root=root)
        assert samples.labels is not None
        assert samples.labels.classes == ("3", "7")
        assert samples.labels.values.tolist() == [1, 0]
        assert samples.names(range(2)) == ["x/a b.png", "x/c.png"]
        assert samples.read([1])[0].shape == (24, 32, 3)


def test_names_are_labels_too(paint, tmp_path: Path) -> None:
    paint("a.png")
    (tmp_path / "list.txt").write_text("a.png dog\na.png cat\n")
    labels = open_list(tmp_path / "list.txt", labelled=True).labels
    assert labels is not None
    assert labels.classes == ("cat", "dog")


def test_labels_are_dropped_unless_wanted_and_missed_where_wanted(paint, tmp_path: Path) -> None:
    paint("a.png")
    (tmp_path / "list.txt").write_text("a.png 1\na.png\n")
    assert open_list(tmp_path / "list.txt", labelled=False).labels is None
    with pytest.raises(DataError, match=r"line 2 of .* has no label"):
        open_list(tmp_path / "list.txt", labelled=True)


def test_an_empty_list_and_a_file_of_bytes_are_errors(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(DataError, match="lists no images"):
        open_list(tmp_path / "empty.txt", labelled=False)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(DataError, match="is not a data set"):
        open_list(tmp_path / "bytes", labelled=False)


def test_a_list_beside_the_images_folder_starts_one_folder_above(paint, tmp_path: Path) -> None:
    """As in the Transfer-Learning-Library: image_list/amazon.txt beside amazon/."""
    paint("amazon/mug/a.png")
    paint("amazon/pen/b.png")
    (tmp_path / "image_list").mkdir()
    (tmp_path / "image_list" / "amazon.txt").write_text("amazon/mug/a.png 1\namazon/pen/b.png 0\n")
    samples = open_list(tmp_path / "image_list" / "amazon.txt", labelled=True)
    assert all(path.is_file() for path in samples.paths)
    paint("image_list/amazon/mug/a.png")
    samples = open_list(tmp_path / "image_list" / "amazon.txt", labelled=True)
    assert samples.paths[0] == tmp_path / "image_list" / "amazon" / "mug" / "a.png", "its own folder comes first"
