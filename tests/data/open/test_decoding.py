from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from paretoda.data.open.decoding import check_file, decode, read_pixels, read_shape
from paretoda.errors import DataError

RED, GREEN = (200, 30, 30), (20, 180, 40)


def halves(size: tuple[int, int] = (40, 24)) -> Image.Image:
    """Red on the left, green on the right."""
    image = Image.new("RGB", size, RED)
    image.paste(GREEN, (size[0] // 2, 0, *size))
    return image


def near(pixel: np.ndarray, colour: tuple[int, ...], by: int = 12) -> bool:
    return bool(np.abs(pixel.astype(int) - np.array(colour)).max() <= by)


@pytest.mark.parametrize(
    "name", ["a.jpg", "a.png", "a.bmp", "a.tif", "a.webp", "a.gif", "a.ppm", "übung 3 .jpg", "図.png"]
)
def test_every_format_is_decoded(tmp_path: Path, name: str) -> None:
    halves().save(tmp_path / name, quality=95)
    found = decode(tmp_path / name)
    assert found.shape == (24, 40, 3)
    assert found.dtype == np.uint8
    assert near(found[5, 5], RED, 40)
    assert near(found[5, -5], GREEN, 40)
    assert read_shape(tmp_path / name)[:2] == (24, 40)


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "P"])
def test_colour_modes_become_rgb(tmp_path: Path, mode: str) -> None:
    suffix = {"CMYK": "jpg", "P": "png"}.get(mode, "tif")
    halves().convert(mode).save(tmp_path / f"a.{suffix}")
    try:
        with Image.open(tmp_path / f"a.{suffix}") as written:
            written.load()
    except OSError:
        pytest.skip("this Pillow cannot read what it wrote (YCbCr in TIFF, up to 12.1)")
    found = decode(tmp_path / f"a.{suffix}")
    assert near(found[5, 5], RED, 35)  # the usual palette is coarse
    assert near(found[5, -5], GREEN, 35)


@pytest.mark.parametrize("mode", ["1", "L"])
def test_grey_stays_grey(tmp_path: Path, mode: str) -> None:
    Image.new("L", (8, 6), 255).convert(mode).save(tmp_path / "a.png")
    assert decode(tmp_path / "a.png").shape == (6, 8)
    assert (decode(tmp_path / "a.png") == 255).all()


def test_what_is_transparent_is_white(tmp_path: Path) -> None:
    image = halves().convert("RGBA")
    image.putpixel((0, 0), (0, 0, 0, 0))
    image.putpixel((1, 0), (0, 0, 0, 128))
    image.save(tmp_path / "a.png")
    found = decode(tmp_path / "a.png")
    assert near(found[0, 0], (255, 255, 255), 0)
    assert near(found[0, 1], (127, 127, 127), 1)
    assert near(found[0, 2], RED, 0)


def test_a_palette_with_transparency_is_decoded_without_a_warning(tmp_path: Path) -> None:
    image = halves().convert("P", palette=Image.Palette.ADAPTIVE, colors=2)
    transparent = image.getpixel((0, 0))
    image.save(tmp_path / "a.png", transparency=bytes(0 if k == transparent else 255 for k in range(2)))
    found = decode(tmp_path / "a.png")
    assert near(found[5, 5], (255, 255, 255), 0)
    assert near(found[5, -5], GREEN, 3)


def test_grey_with_alpha_stays_grey(tmp_path: Path) -> None:
    Image.new("LA", (4, 4), (100, 0)).save(tmp_path / "a.png")
    assert decode(tmp_path / "a.png").tolist() == [[255] * 4] * 4


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_sixteen_bits_become_eight(tmp_path: Path, suffix: str) -> None:
    deep = (np.arange(256, dtype=np.uint16) * 257).reshape(16, 16)
    Image.fromarray(deep).save(tmp_path / f"a.{suffix}")
    assert (decode(tmp_path / f"a.{suffix}") == np.arange(256).reshape(16, 16)).all()
    assert read_shape(tmp_path / f"a.{suffix}") == (16, 16, 1)


def test_float_images_are_scaled_or_refused(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0.0, 0.5, 1.0]], dtype=np.float32)).save(tmp_path / "a.tif")
    assert decode(tmp_path / "a.tif").tolist() == [[0, 128, 255]]
    Image.fromarray(np.array([[0.0, np.nan]], dtype=np.float32)).save(tmp_path / "b.tif")
    with pytest.raises(DataError, match=r"b\.tif is damaged .* finite"):
        decode(tmp_path / "b.tif")


@pytest.mark.parametrize(
    ("orientation", "shape", "left"), [(1, (24, 40), RED), (3, (24, 40), GREEN), (6, (40, 24), None)]
)
def test_photographs_are_turned_upright(tmp_path: Path, orientation: int, shape: tuple[int, int], left: object) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    halves().save(tmp_path / "a.jpg", exif=exif, quality=95)
    found = decode(tmp_path / "a.jpg")
    assert found.shape[:2] == shape == read_shape(tmp_path / "a.jpg")[:2]
    if left:
        assert near(found[12, 3], left, 25)
    else:  # turned clockwise: left becomes the top
        assert near(found[3, 12], RED, 25)
        assert near(found[-3, 12], GREEN, 25)


def test_a_large_jpeg_is_decoded_small_but_not_too_small(tmp_path: Path) -> None:
    halves((1600, 1200)).save(tmp_path / "a.jpg")
    small = decode(tmp_path / "a.jpg", at_least=100)
    assert small.shape == (150, 200, 3)
    assert decode(tmp_path / "a.jpg").shape == (1200, 1600, 3)


def broken(folder: Path) -> dict[str, Path]:
    """Files that are no images, each in its own way."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8))
    for name in ("truncated.jpg", "truncated.png", "truncated.tif"):
        noise.save(folder / name)
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) // 2])
    (folder / "empty.png").touch()
    (folder / "text.jpg").write_text("not an image")
    return {path.stem: path for path in folder.iterdir()}


@pytest.mark.parametrize("thorough", [False, True])
def test_broken_files_are_found_and_named(tmp_path: Path, thorough: bool) -> None:
    reasons = {"empty.png": "is empty", "text.jpg": "is not an image"}
    for path in broken(tmp_path).values():
        with pytest.raises(DataError, match=f"{path.name} {reasons.get(path.name, 'is damaged')}"):
            check_file(path, thorough=thorough)
    with pytest.raises(DataError, match=r"none\.png does not exist"):
        check_file(tmp_path / "none.png", thorough=thorough)


@pytest.mark.parametrize("thorough", [False, True])
def test_whole_files_pass_the_check(tmp_path: Path, thorough: bool) -> None:
    for name in ("a.jpg", "a.png", "a.tif", "a.gif"):
        halves().save(tmp_path / name)
        check_file(tmp_path / name, thorough=thorough)
    with (tmp_path / "a.jpg").open("ab") as file:
        file.write(b"a camera's own data after the end")
    check_file(tmp_path / "a.jpg", thorough=thorough)


def test_a_wrong_checksum_in_a_png_is_found_by_the_quick_check(tmp_path: Path) -> None:
    halves().save(tmp_path / "a.png")
    content = bytearray((tmp_path / "a.png").read_bytes())
    content[len(content) // 2] ^= 255
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        check_file(tmp_path / "a.png", thorough=False)


def test_pixels_of_an_open_image_are_those_of_the_file(tmp_path: Path) -> None:
    halves().save(tmp_path / "a.png")
    assert (read_pixels(halves()) == decode(tmp_path / "a.png")).all()
