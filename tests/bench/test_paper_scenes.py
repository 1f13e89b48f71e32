"""Table 4 of the paper: its rows run on folders as GTA5 and Cityscapes have them, with its numbers beside ours."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from data.segmentation.conftest import Writer

from paretoda.bench.contenders import plan
from paretoda.bench.execute import execute_run
from paretoda.bench.paper import list_paper_rows, make_paper_contenders
from paretoda.bench.request import BenchRequest, describe_bench, plan_bench
from paretoda.bench.suites import SUITES
from paretoda.data.segmentation.label_tables import find_table

SUITE = "gta5-cityscapes"
TINY = {"backbone": "dilated", "size": "48x32", "source_size": "64x32", "steps": 2, "select": "last"}


@pytest.fixture(scope="module")
def streets(tmp_path_factory):
    """GTA5 and Cityscapes in their own layouts, images of 12 x 8 pixels."""
    home = tmp_path_factory.mktemp("streets")
    writer = Writer(home)
    writer.gta5(4).rename(home / "GTA5")
    writer.cityscapes({"aachen_000000": 11, "bochum_000000": 11})
    writer.cityscapes({"ulm_000000": 2}, split="val").rename(home / "Cityscapes")
    return home


@pytest.mark.parametrize("row", list_paper_rows(SUITE))
def test_a_row_of_table_4_runs_with_the_papers_preset(row, streets, tmp_path):
    same = {"task": "segmentation", "preset": "paper", **TINY}
    rows = dict(zip(list_paper_rows(SUITE), make_paper_contenders(SUITE, same), strict=True))
    quick = {"options": ["translation.steps=1"]} if row == "CyCADA" else {}
    contender = replace(rows[row], settings={**rows[row].settings, **quick})
    (spec,) = plan(SUITE, SUITES[SUITE], [contender], seeds=1)
    line = execute_run(spec, streets, tmp_path / "work")
    assert (line["config"]["weight_decay"], line["config"]["lr"], line["config"]["convention"]) == (
        1e-4,
        2.5e-4,
        "caffe",
    )
    assert 0 <= line["miou"]["chosen"] <= 1
    assert set(line["per_class"]["chosen"]) == set(find_table("cityscapes").names)
    losses = {"source"} | (set() if row == "ResNet-101" else {"alignment"})
    assert set(line["weights"]) == losses | ({"target"} if row.endswith("ParetoDA") else set())
    levels = 2 if row.partition(" ")[0] in ("ResNet-101", "AdaSegNet", "CyCADA", "AdvEnt") else 1
    assert line["config"]["levels"] == levels


def test_the_bench_shows_every_class_in_the_papers_order_beside_its_numbers(inside, streets, tmp_path):
    given = [text for name, value in TINY.items() for text in (f"--{name.replace('_', '-')}", value)]
    end = inside("bench", SUITE, "--data", streets, "--methods", "source-only", "--preset", "paper", "--seeds", 1,
                 "--jobs", 1, *given, "--out", tmp_path / "out")  # fmt: skip
    assert end.code == 0, end.err
    names = find_table("cityscapes").names
    assert f"|  | {' | '.join(names)} | average |" in end.out
    assert "| FDA + ParetoDA (paper) | 47.2 |" in end.out
    assert "| FDA + ParetoDA (paper) | 85.4 | 37.6 |" in end.out
    (row,) = csv.DictReader(io.StringIO((tmp_path / "out" / "classes.csv").read_text()))
    (whole,) = csv.DictReader(io.StringIO((tmp_path / "out" / "chosen.csv").read_text()))
    assert float(row["average mean"]) == pytest.approx(float(whole["GTA5-Cityscapes mean"])), "the mean of IoUs is mIoU"


def test_a_deeplab_without_weights_is_told(streets, tmp_path):
    names = ("tasks", "methods", "target_losses", "schemes", "baselines", "lrs")
    facts = {"suite": SUITE, **dict.fromkeys(names, ()), "contender_file": Path("paper"), "seeds": 1, "base": None}
    for settings, told in [({}, True), ({"backbone_weights": "x.pth"}, False), ({"backbone": "dilated"}, False)]:
        request = BenchRequest(**facts, settings=settings)
        said = describe_bench(request, plan_bench(request, tmp_path / "out", streets))
        assert any("starts from random weights" in sentence for sentence in said) == told


def test_a_bench_whose_runs_all_fail_says_so_without_a_table_by_class(inside, streets, tmp_path):
    given = ("bench", SUITE, "--data", streets, "--methods", "source-only", "--seeds", 1, "--jobs", 1, "--steps", 1)
    end = inside(*given, "--backbone-weights", tmp_path / "nowhere.pth", "--out", tmp_path / "out")
    assert end.code == 1, end.err
    assert "1 of 1 runs failed" in end.err
    assert not (tmp_path / "out" / "classes.md").exists()
