"""The documented commands of segmentation run: the embedded bench, and GTA5 to Cityscapes on small files."""

import json
import re
import shlex
from pathlib import Path

import pytest
import torch
from cli.processes import command
from data.segmentation.conftest import Writer
from tasks.segmentation.conftest import folders, streets  # noqa: F401  (fixtures)

from paretoda.data.segmentation.label_tables import SYNTHIA
from paretoda.io.toml import read_toml
from paretoda.models.backbones.resnet import resnet101

SMALL = ("--steps", 2, "--batch-size", 2)
PAGE = (Path(__file__).parents[2] / "docs" / "segmentation.md").read_text(encoding="utf-8")


def commands(heading: str) -> list[list[str]]:
    """The commands of the first block below a heading, as lists of words, without `paretoda`."""
    block = re.search(rf"^##+ {heading}.*?```\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    assert block is not None
    lines = block.group(1).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines]


@pytest.mark.slow
def test_the_embedded_bench_runs(tmp_path):
    (given,) = commands("Try it without data")
    end = command(*[str(tmp_path / "bench") if word == "BENCH" else word for word in given], "--steps", 4, "--jobs", 2)
    assert end.code == 0, end.err
    assert "flat-muted" in (tmp_path / "bench" / "chosen.md").read_text()


@pytest.mark.slow
def test_own_scenes_from_the_documented_commands(folders, tmp_path):  # noqa: F811
    lines = commands("Your own scenes")
    assert [line[0] for line in lines] == ["doctor", "adapt", "predict", "evaluate", "report"]
    places = {"SOURCE": folders / "source", "TARGET": folders / "target", "LABELLED": folders / "target"}
    places |= {"IMAGES": folders / "target" / "images", "MAPS": tmp_path / "maps", "RUN": tmp_path / "run"}
    for line in lines:
        end = command(*[places.get(word, word) for word in line], *(SMALL if line[0] == "adapt" else ()))
        assert end.code == 0, end.err
    assert len(list((tmp_path / "maps").glob("*-overlay.png"))) == 24


@pytest.mark.slow
def test_gta5_as_camvids_classes_from_the_documented_commands(tmp_path):
    writer = Writer(tmp_path)
    gta5, camvid = writer.gta5(6), writer.camvid(20)
    places = {"GTA5": gta5, "CamVid": camvid, "CamVid/test": camvid / "test", "RUN": tmp_path / "run"}
    lines = commands("Labels of another data set's classes")
    assert [line[0] for line in lines] == ["adapt", "evaluate", "evaluate"]
    for line in lines:
        end = command(*[places.get(word, word) for word in line], *(SMALL if line[0] == "adapt" else ()))
        assert end.code == 0, end.err
    (names,) = re.findall(r'--classes "(.*?)"', PAGE)
    assert set(names.split(",")) == {SYNTHIA.names[cls] for _, cls in SYNTHIA.ids}


@pytest.mark.slow
def test_fda_with_three_bands_and_two_rounds_from_the_documented_commands(folders, tmp_path):  # noqa: F811
    lines = commands("FDA as published")
    assert [line[0] for line in lines] == [*["adapt"] * 3, "evaluate", *["adapt"] * 3, "evaluate", "predict"]
    places = {"SOURCE": folders / "source", "TARGET": folders / "target", "LABELLED": folders / "target"}
    places |= {"IMAGES": folders / "target" / "images", "MAPS": tmp_path / "maps"}
    runs = {
        word: tmp_path / word for line in lines for word in line if word.rstrip("2") in ("NARROW", "MIDDLE", "WIDE")
    }
    places |= runs | {"NARROW,MIDDLE,WIDE": ",".join(str(runs[name]) for name in ("NARROW", "MIDDLE", "WIDE"))}
    for line in lines:
        end = command(*[places.get(word, word) for word in line], *(SMALL if line[0] == "adapt" else ()))
        assert end.code == 0, end.err
        assert ("The mean of 3 runs labelled" in end.err) == ("--teachers" in line)
    assert len(list((tmp_path / "maps").glob("*.png"))) == 48


@pytest.mark.slow
def test_gta5_to_cityscapes_with_deeplab_and_resnet101_from_the_documented_commands(tmp_path):
    writer = Writer(tmp_path)
    source = writer.gta5(6).rename(tmp_path / "GTA5")
    writer.cityscapes({"aachen_000000": 12, "bochum_000001": 10})
    target = writer.cityscapes({"lindau_000000": 2}, split="val").rename(tmp_path / "Cityscapes")
    torch.save(resnet101().state_dict(), tmp_path / "resnet101.pth")
    places = {"GTA5": source, "Cityscapes": target, "RUN": tmp_path / "run", "cuda": "cpu", "DATA": tmp_path}
    places |= {"resnet101.pth": tmp_path / "resnet101.pth", "TABLE4": tmp_path / "table"}
    places |= {"Cityscapes/leftImg8bit/val": target / "leftImg8bit" / "val"}
    lines = [[str(places.get(word, word)) for word in words] for words in commands("GTA5 to Cityscapes")]
    bench, adapt, evaluate = lines
    small = ("--steps", 2, "--size", "96x64", "--source-size", "112x72")
    end = command(*adapt, *small)
    assert end.code == 0, end.err
    assert len(list((tmp_path / "run" / "predictions").rglob("*.png"))) == 22
    written = read_toml(tmp_path / "run" / "config.toml")
    assert (written["backbone"], written["scheme"]) == ("deeplab-resnet101", "paretoda-paper")
    end = command(*evaluate)
    assert end.code == 0, end.err
    found = json.loads(end.out.splitlines()[-1])
    assert len(found["per_class"]) == 19
    assert found["samples"] == 2
    at = bench.index("--contenders")  # tests/bench/test_paper_scenes.py runs all rows, with a small network
    assert bench[at : at + 2] == ["--contenders", "paper"]
    one = [*bench[:at], "--methods", "source-only", *bench[at + 2 :]]
    end = command(*one, *small, "--select", "last", "--seeds", 1, "--jobs", 1)
    assert end.code == 0, end.err
    assert "| AdvEnt + ParetoDA (paper) | 79.6 | 29.1 |" in end.out
