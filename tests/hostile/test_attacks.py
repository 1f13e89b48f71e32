"""Files that were made to do harm: code in pickles, bombs, pipes, disguises, headers that promise the world."""

import io
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hostile import seeds
from hostile.campaign import deadline, limits
from PIL import Image

from paretoda.bench.contenders import read_contenders
from paretoda.data import open_samples
from paretoda.data.open.decoding import decode, open_image, read_shape
from paretoda.data.samples import class_names, labels_from_names
from paretoda.data.segmentation.label_tables import read_ids
from paretoda.errors import DataError, RunError, SettingsError, WeightsError
from paretoda.io.limits import PIXELS, UNPACKED
from paretoda.models.weights import load_weights
from paretoda.run.directory.directory import RunDirectory
from paretoda.tasks.classification.predictor import load_predictor
from paretoda.tasks.settings import make_settings
from paretoda.training.checkpoint import CheckpointError, read_checkpoint


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def in_archive(trap: Trap) -> bytes:
    """As torch.save writes it."""
    out = io.BytesIO()
    torch.save({"taken": trap, "a": torch.ones(2)}, out)
    return out.getvalue()


def in_old_file(trap: Trap) -> bytes:
    """As torch.save wrote it before."""
    out = io.BytesIO()
    torch.save({"a": trap}, out, _use_new_zipfile_serialization=False)
    return out.getvalue()


def in_npz(trap: Trap) -> bytes:
    out = io.BytesIO()
    np.savez(out, x=np.array([trap], dtype=object), y=np.array([0]))
    return out.getvalue()


def bare(trap: Trap) -> bytes:
    return pickle.dumps(trap)


def model(path: Path) -> None:
    (path.parent / "model.json").write_text("{}")
    load_predictor(path, path.parent / "model.json")


TRAPS: list[tuple[str, Callable[[Trap], bytes], Callable[[Path], Any], type[Exception]]] = [
    ("w.pth", in_archive, lambda path: load_weights(seeds.network(), path), WeightsError),
    ("w.pth", in_old_file, lambda path: load_weights(seeds.network(), path), WeightsError),
    ("w.bin", bare, lambda path: load_weights(seeds.network(), path), WeightsError),
    ("w.safetensors", bare, lambda path: load_weights(seeds.network(), path), WeightsError),
    ("last.pt", in_archive, read_checkpoint, CheckpointError),
    ("last.pt", in_old_file, read_checkpoint, CheckpointError),
    ("last.pt", bare, read_checkpoint, CheckpointError),
    ("model.safetensors", in_archive, model, RunError),
    ("x.npz", in_npz, lambda path: open_samples(path, labelled=True), DataError),
    ("x.npz", in_archive, lambda path: open_samples(path, labelled=True), DataError),
    ("x.npz", bare, lambda path: open_samples(path, labelled=True), DataError),
]


@pytest.mark.parametrize(("name", "make", "use", "error"), TRAPS)
def test_a_pickle_that_runs_code_runs_none(
    name: str, make: Callable[[Trap], bytes], use: Callable[[Path], Any], error: type[Exception], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(make(Trap(tmp_path / "sprung")))
    with pytest.raises(error):
        use(tmp_path / name)
    assert not (tmp_path / "sprung").exists()
    pickle.loads(pickle.dumps(Trap(tmp_path / "sprung")))
    assert (tmp_path / "sprung").exists(), "the trap works"


def test_an_archive_that_torch_did_not_write_is_not_unpacked(tmp_path: Path) -> None:
    with (
        zipfile.ZipFile(io.BytesIO(seeds.weights()["w.pth"])) as whole,
        zipfile.ZipFile(tmp_path / "w.pth", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for info in whole.infolist():
            packed.writestr(info.filename, whole.read(info))
    with pytest.raises(WeightsError):
        load_weights(seeds.network(), tmp_path / "w.pth")


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(10, 100000000000)", "(-1, 3)", "(9999999999999999999999, 2)"])
@pytest.mark.parametrize("dtype", ["<f4", "<U0", "|V0", "<U100000000"])
def test_a_header_that_promises_the_world_takes_no_memory(shape: str, dtype: str, tmp_path: Path) -> None:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + b"\0" * 64
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", content)
    with limits(), pytest.raises(DataError, match="damaged"):
        open_samples(tmp_path / "x.npz", labelled=False)


def test_a_packed_array_that_would_fill_the_memory_is_refused_until_the_limit_is_lifted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros((1000, 1000), np.uint8))
    np.savez(tmp_path / "large.npz", x=np.zeros((1000, 1000), np.uint8))
    monkeypatch.setenv(UNPACKED, "100000")
    with pytest.raises(DataError, match=r"unpacks from .* to 1000128 bytes.*--max-unpacked-bytes 1000128"):
        open_samples(tmp_path / "bomb.npz", labelled=False)
    assert len(open_samples(tmp_path / "large.npz", labelled=False)) == 1000, "what is large on the disk is no bomb"
    monkeypatch.setenv(UNPACKED, "1000128")
    assert len(open_samples(tmp_path / "bomb.npz", labelled=False)) == 1000
    monkeypatch.setenv(UNPACKED, "many")
    with pytest.raises(DataError, match="must be a whole number"):
        open_samples(tmp_path / "bomb.npz", labelled=False)


def huge_png(side: int) -> bytes:
    """A picture of a few bytes whose header says otherwise."""
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b"")]
    body = b"".join(struct.pack(">I", len(b)) + k + b + struct.pack(">I", zlib.crc32(k + b)) for k, b in parts)
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize("use", [decode, read_shape, read_ids])
@pytest.mark.parametrize("side", [9500, 12000, 60000])
def test_a_picture_that_would_fill_the_memory_is_refused(use: Callable[[Path], Any], side: int, tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(huge_png(side))
    with limits(), pytest.raises(DataError, match=r"pixels.*(--max-image-pixels|MAX_IMAGE_PIXELS)"):
        use(tmp_path / "x.png")


def test_the_limit_of_a_picture_can_be_lifted_and_lowered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Image.MAX_IMAGE_PIXELS
    (tmp_path / "x.png").write_bytes(huge_png(14000))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", before)
    monkeypatch.setenv(PIXELS, str(14000**2))
    with open_image(tmp_path / "x.png") as image:
        assert image.size == (14000, 14000)
    Image.new("L", (20, 20)).save(tmp_path / "y.png")
    monkeypatch.setenv(PIXELS, "399")
    with pytest.raises(DataError, match="20x20 pixels, more than the 399"):
        decode(tmp_path / "y.png")


def test_a_disguised_file_meets_no_decoder_that_starts_programs(tmp_path: Path) -> None:
    text = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n(%pipe%touch x) (w) file\n%%EOF\n"
    (tmp_path / "x.png").write_text(text)
    with pytest.raises(DataError, match="is not an image"):
        decode(tmp_path / "x.png")


def test_a_pipe_among_the_pictures_is_no_picture_and_nobody_waits_for_it(tmp_path: Path) -> None:
    for sub in ("a", "b"):
        (tmp_path / sub).mkdir()
        os.mkfifo(tmp_path / sub / "x.png")
    with deadline(), pytest.raises(DataError, match="is no file"):
        open_samples(tmp_path, labelled=False)


def test_a_description_of_a_giant_takes_no_memory(tmp_path: Path) -> None:
    folder = seeds.image_model(tmp_path / "m")
    text = (folder / "model.json").read_text()
    assert '"bottleneck": 4' in text
    for wide in ("400000000", "4" * 30, "-4", "4.5"):
        (folder / "model.json").write_text(text.replace('"bottleneck": 4', f'"bottleneck": {wide}'))
        with limits(), pytest.raises(RunError):
            load_predictor(folder / "model.safetensors", folder / "model.json")


def test_numbers_of_thousands_of_digits_are_names() -> None:
    assert labels_from_names(["9" * 5000, "1"]).classes == ("1", "9" * 5000)


def test_many_names_are_compared_in_no_time() -> None:
    with deadline():
        assert len(class_names(np.array([str(k) for k in range(100_000)]), "it")) == 100_000


ABSURD: list[dict[str, Any]] = [
    *({"steps": value} for value in (10**30, -1, float("nan"), "9" * 5000, [1])),
    *({"lr": value} for value in (float("inf"), float("nan"), -0.1, 0)),
    *({"image_size": value} for value in (10**9, -8)),
    *({"batch_size": value} for value in (10**12, -2)),
    *({"bottleneck": value} for value in (10**12, 0)),
    *({"seed": value} for value in (2**63, -1)),
    *({"weight_decay": float("inf")}, {"loss_weights": [float("nan")] * 3, "scheme": "linear"}),
    *({"task": "segmentation", "size": value} for value in ("9" * 30 + "x8", "100000x8", "0x0", "x", "8x8x8")),
    *({"options": value} for value in (5, ["x"], ["alignment.x="], [1])),
    *({"preset": "paper", "options": 5}, {"preset": ["x"]}, {"method": 5}, {"method": "a" * 10**6}),
]


@pytest.mark.parametrize("values", ABSURD, ids=lambda values: str(values)[:60])
def test_absurd_settings_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        make_settings(values)


@pytest.mark.parametrize("text", ["[" * 100_000, "x = " + "[" * 100_000, "x = " + "{a=" * 50_000, "x = " + "9" * 5000])
def test_a_config_that_is_nested_or_long_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(SettingsError):
        RunDirectory(tmp_path).read_config()
    with pytest.raises(SettingsError):
        read_contenders(tmp_path / "config.toml", {})
