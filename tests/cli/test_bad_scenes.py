"""Scenes that cannot be used, in every layout: one sentence with the file's name and what to do, from both commands."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cli.processes import Inside
from data.segmentation.conftest import Writer
from PIL import Image
from tasks.segmentation.conftest import folders, streets  # noqa: F401  (fixtures)

from paretoda.data.batching import split_positions

QUICK = ("--steps", "6", "--batch-size", "2", "--evaluate-every", "3", "--refresh-every", "3", "--device", "cpu")
SPOILED = {
    "plain": "images/sub/1.png labels/sub/1.png",
    "list": "images/sub/1.png labels/sub/1.png",
    "gta5": "images/00002.png labels/00002.png",
    "cityscapes": "leftImg8bit/train/ulm/ulm_000000_000001_leftImg8bit.png "
    "gtFine/train/ulm/ulm_000000_000001_gtFine_labelIds.png",
    "synthia": "RGB/0000001.png GT/LABELS/0000001.png",
    "camvid": "train/0001TP_000001.png trainannot/0001TP_000001.png",
}
"""Layout -> the scene that is spoiled, image and label."""


def drawn(layout: str, write: Writer) -> tuple[Path, Path, Path]:
    """What --source is given, and image and label of one scene below it."""
    if layout == "cityscapes":
        root = write.cityscapes({"ulm_000000": 4})
    else:
        root = getattr(write, "plain" if layout == "list" else layout)(4)
    given = root
    if layout in ("plain", "list"):
        (root / "classes.txt").write_text("a\nb\nc\n")
    if layout == "list":
        given = root / "all.txt"
        given.write_text("".join(f"images/sub/{k}.png labels/sub/{k}.png\n" for k in range(4)))
    image, label = (root / name for name in SPOILED[layout].split())
    assert image.is_file()
    assert label.is_file()
    return given, image, label


def written(label: Path, layout: str, write: Writer, value: int, size: tuple[int, int] = (12, 8)) -> None:
    """A label map of one value, in the layout's format."""
    name = str(label.relative_to(write.root))
    if layout == "synthia":
        write.sixteen(name, np.full((*size[::-1], 3), value, np.uint16))
    else:
        write.ids(name, [value], size=size, palette=layout == "gta5")


def both(inside: Inside, source: Path, tmp_path: Path) -> tuple[str, str]:
    """The sentence of `adapt`, and what `doctor` says, without the breaks of its lines; both refuse."""
    target = Writer(tmp_path / "target")
    for k in range(20):
        target.image(f"{k}.png")
    given = ("--task", "segmentation", "--source", source, "--target", target.root)
    sentence = inside("adapt", *given, "--out", tmp_path / "run", *QUICK).sentence
    assert not (tmp_path / "run" / "model.safetensors").exists()
    end = inside("doctor", *given)
    assert end.code == 2
    assert "Traceback" not in end.err
    assert "adapt would refuse these data" in end.out
    return sentence, "".join(end.out.split())


@pytest.fixture
def scenes(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


@pytest.mark.parametrize("layout", SPOILED)
def test_a_missing_partner(layout: str, scenes: Writer, tmp_path: Path, inside: Inside) -> None:
    source, image, label = drawn(layout, scenes)
    label.unlink()
    sentence, doctor = both(inside, source, tmp_path)
    assert f"{image} has no label file {label}; add it, or remove the image" in sentence
    assert str(label) in doctor


@pytest.mark.parametrize("layout", SPOILED)
def test_an_image_and_a_label_of_different_sizes(layout: str, scenes: Writer, tmp_path: Path, inside: Inside) -> None:
    source, image, label = drawn(layout, scenes)
    written(label, layout, scenes, 7, size=(40, 30))
    sentence, doctor = both(inside, source, tmp_path)
    assert f"{image} is 12x8 and its label {label} is 40x30; bring the label to its image's size" in sentence
    assert str(label) in doctor


@pytest.mark.parametrize("layout", SPOILED)
def test_a_label_outside_the_table(layout: str, scenes: Writer, tmp_path: Path, inside: Inside) -> None:
    source, _, label = drawn(layout, scenes)
    written(label, layout, scenes, 77)
    sentence, doctor = both(inside, source, tmp_path)
    assert f"{label} has the label 77, which is none of the" in sentence
    assert "set such pixels to 255" in sentence
    assert f"{label}hasthelabel77" in doctor


@pytest.mark.parametrize("layout", SPOILED)
def test_a_source_without_any_label(layout: str, scenes: Writer, tmp_path: Path, inside: Inside) -> None:
    """Once `adapt` ended with an internal error here."""
    source, image, label = drawn(layout, scenes)
    for file in sorted(label.parent.iterdir()):
        written(file, layout, scenes, 0 if layout == "synthia" else 255)
    sentence, doctor = both(inside, source, tmp_path)
    assert "no pixel of the source has a label, as in" in sentence
    assert image.suffix in sentence
    assert "Nopixelofthesourcehasalabel" in doctor


def test_a_wrong_label_where_nothing_names_the_classes_is_shown(scenes: Writer, tmp_path: Path, inside: Inside) -> None:
    source, _, label = drawn("plain", scenes)
    (source / "classes.txt").unlink()
    written(label, "plain", scenes, 77)
    end = inside("doctor", "--task", "segmentation", "--source", source, "--target", tmp_path / "plain" / "images")
    assert f"seewhetherthelabel77in{label}isamistake" in "".join(end.out.split())


@pytest.mark.parametrize("unlabelled", ["held-out", "all but two"])
def test_images_without_a_label_cost_nothing_and_spoil_nothing(
    folders: Path,  # noqa: F811
    unlabelled: str,
    tmp_path: Path,
    inside: Inside,
) -> None:
    """Once a run whose only held-out image had no label ended half-way, with an internal error."""
    source = tmp_path / "source"
    shutil.copytree(folders / "source", source)
    (held,) = split_positions(12, 0.1, 0, "split-source")[1]
    for place in (held,) if unlabelled == "held-out" else [place for place in range(12) if place not in (3, 7)]:
        Image.fromarray(np.full((48, 64), 255, np.uint8)).save(source / "labels" / f"{place:03d}.png")
    given = ("--task", "segmentation", "--source", source, "--target", folders / "target", "--method", "source-only")
    end = inside("adapt", *given, "--out", tmp_path / "run", *QUICK)
    assert end.code == 0, end.err
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert all(line["finite"] for line in lines)
    losses = [line["losses"]["source"] for line in lines]
    assert (0 in losses) == (unlabelled == "all but two"), losses
    assert np.isfinite(losses).all()
    assert max(losses) > 0
