"""Label files of every kind give the ids that were written."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from paretoda.data.segmentation.label_tables import read_ids
from paretoda.errors import DataError


@pytest.mark.parametrize("channels", [3, 4])
def test_sixteen_bits_with_every_filter(write, channels: int) -> None:
    values = write.rng.integers(0, 65536, (11, 7, channels)).astype(np.uint16)
    values[..., 0] = write.rng.integers(0, 256, (11, 7))
    write.sixteen("label.png", values)
    assert (read_ids(write.root / "label.png") == values[..., 0]).all()
    with Image.open(write.root / "label.png") as image:  # why there is a decoder of our own: Pillow drops the ids
        assert not np.asarray(image)[..., 0].any()


def test_sixteen_bits_beyond_255_are_no_ids(write) -> None:
    values = np.zeros((4, 4, 3), np.uint16)
    values[2, 1, 0] = 300
    write.sixteen("label.png", values)
    with pytest.raises(DataError, match=r"label\.png has the label 300"):
        read_ids(write.root / "label.png")


def test_palette_grey_and_deep_grey(write) -> None:
    assert (write.ids("p.png", [0, 7, 33], palette=True) == read_ids(write.root / "p.png")).all()
    assert (write.ids("l.png", [0, 7, 255]) == read_ids(write.root / "l.png")).all()
    deep = np.array([[0, 7], [11, 255]], np.uint16)
    Image.fromarray(deep).save(write.path("deep.png"))
    assert (read_ids(write.root / "deep.png") == deep).all()
    Image.fromarray(np.eye(3, dtype=bool)).save(write.path("two.png"))
    assert (read_ids(write.root / "two.png") == np.eye(3)).all()


def test_bad_files_are_named(write, tmp_path: Path) -> None:
    write.image("colours.png")
    with pytest.raises(DataError, match=r"colours\.png is a coloured image \(RGB\)"):
        read_ids(tmp_path / "colours.png")
    (tmp_path / "empty.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty\.png is empty"):
        read_ids(tmp_path / "empty.png")
    (tmp_path / "text.png").write_text("no image")
    with pytest.raises(DataError, match=r"text\.png is not an image"):
        read_ids(tmp_path / "text.png")
    write.ids("cut.png", list(range(30)), size=(64, 64))
    content = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"cut\.png is damaged or truncated"):
        read_ids(tmp_path / "cut.png")
    with pytest.raises(DataError, match=r"gone\.png does not exist"):
        read_ids(tmp_path / "gone.png")
