"""Small files in the layouts of the real data sets."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

CITYSCAPES = {
    7: (128, 64, 128),
    8: (244, 35, 232),
    11: (70, 70, 70),
    12: (102, 102, 156),
    13: (190, 153, 153),
    17: (153, 153, 153),
    19: (250, 170, 30),
    20: (220, 220, 0),
    21: (107, 142, 35),
    22: (152, 251, 152),
    23: (70, 130, 180),
    24: (220, 20, 60),
    25: (255, 0, 0),
    26: (0, 0, 142),
    27: (0, 0, 70),
    28: (0, 60, 100),
    31: (0, 80, 100),
    32: (0, 0, 230),
    33: (119, 11, 32),
}
"""labelId -> colour, in the order of the train ids."""


class Writer:
    """Writes scenes below a folder and remembers what it wrote.

    Args:
        root: of everything.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.rng = np.random.default_rng(0)

    def image(self, name: str, size: tuple[int, int] = (12, 8)) -> NDArray[np.uint8]:
        pixels = self.rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        Image.fromarray(pixels).save(self.path(name))
        return pixels

    def ids(
        self, name: str, choices: list[int], size: tuple[int, int] = (12, 8), palette: bool = False
    ) -> NDArray[np.uint8]:
        values = self.rng.choice(np.array(choices, np.uint8), (size[1], size[0]))
        image = Image.fromarray(values)
        if palette:
            image = image.copy()
            image.putpalette([number for value in range(256) for number in CITYSCAPES.get(value, (0, 0, 0))])
        image.save(self.path(name))
        return values

    def sixteen(self, name: str, values: NDArray[np.uint16]) -> None:
        """A PNG of 16 bits per channel that uses all five filters."""
        height, width, channels = values.shape
        rows = values.astype(">u2").reshape(height, -1).view(np.uint8).astype(int)
        content, above = b"", np.zeros_like(rows[0])
        for number, row in enumerate(rows):
            content += bytes([number % 5]) + filtered(row, above, number % 5, 2 * channels)
            above = row
        head = struct.pack(">IIBBBBB", width, height, 16, {3: 2, 4: 6}[channels], 0, 0, 0)
        chunks = (b"IHDR", head), (b"IDAT", zlib.compress(content)), (b"IEND", b"")
        body = b"".join(struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in chunks)
        self.path(name).write_bytes(b"\x89PNG\r\n\x1a\n" + body)

    def path(self, name: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def gta5(self, count: int = 4) -> Path:
        for number in range(1, count + 1):
            self.image(f"gta5/images/{number:05}.png")
            self.ids(f"gta5/labels/{number:05}.png", list(range(35)), palette=True)
        return self.root / "gta5"

    def cityscapes(self, frames: dict[str, int], split: str = "train", ending: str = "labelIds") -> Path:
        """So many frames for each city_sequence."""
        choices = [*range(34), 255] if ending == "labelIds" else [*range(19), 255]
        for sequence, count in frames.items():
            city = sequence.split("_")[0]
            for frame in range(count):
                stem = f"{city}/{sequence}_{frame:06}"
                self.image(f"cityscapes/leftImg8bit/{split}/{stem}_leftImg8bit.png")
                self.ids(f"cityscapes/gtFine/{split}/{stem}_gtFine_{ending}.png", choices)
                self.image(f"cityscapes/gtFine/{split}/{stem}_gtFine_color.png")
        return self.root / "cityscapes"

    def camvid(self, count: int = 4) -> Path:
        for split in ("train", "val", "test"):
            for number in range(count):
                self.image(f"camvid/{split}/0001TP_{number:06}.png")
                self.ids(f"camvid/{split}annot/0001TP_{number:06}.png", list(range(12)))
        return self.root / "camvid"

    def synthia(self, count: int = 3) -> Path:
        for number in range(count):
            self.image(f"synthia/RGB/{number:07}.png")
            values = self.rng.integers(0, 65536, (8, 12, 3)).astype(np.uint16)
            values[..., 0] = self.rng.integers(0, 23, (8, 12))
            self.sixteen(f"synthia/GT/LABELS/{number:07}.png", values)
        return self.root / "synthia"

    def plain(self, count: int = 4, classes: int = 3, name: str = "plain") -> Path:
        for number in range(count):
            self.image(f"{name}/images/sub/{number}.png")
            self.ids(f"{name}/labels/sub/{number}.png", [*range(classes), 255])
        return self.root / name


def filtered(row: NDArray[np.int_], above: NDArray[np.int_], kind: int, step: int) -> bytes:
    """A row of bytes behind one of PNG's filters."""
    left, corner = (np.concatenate([np.zeros(step, int), other[:-step]]) for other in (row, above))
    guess = left + above - corner
    near = [abs(guess - other) for other in (left, above, corner)]
    paeth = np.where((near[0] <= near[1]) & (near[0] <= near[2]), left, np.where(near[1] <= near[2], above, corner))
    expected = (0 * row, left, above, (left + above) // 2, paeth)[kind]
    return ((row - expected) % 256).astype(np.uint8).tobytes()


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    return Writer(tmp_path)
