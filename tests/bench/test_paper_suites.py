"""The numbers of the paper's suites are its numbers, and every row that can be run has a number beside it."""

import re
from pathlib import Path

import pytest

from paretoda.bench.paper_numbers import (
    GTA5_CLASSES_PAPER,
    GTA5_PAPER,
    OFFICE31_PAPER,
    OFFICE31_STDS,
    OFFICE_HOME_PAPER,
    OFFICE_HOME_STDS,
    VISDA_CLASSES_PAPER,
    VISDA_PAPER,
)
from paretoda.bench.results import split_by_class
from paretoda.bench.suites import PAPER_SUITES, SUITES
from paretoda.data.segmentation.label_tables import find_table
from paretoda.report.tables import TableStyle, make_table, to_markdown

PAPER = Path(__file__).parents[3] / "shared" / "spec" / "paper.tex"


def test_every_column_of_the_paper_is_a_task():
    for name, suite in PAPER_SUITES.items():
        for row in suite.references.values():
            assert set(row) == set(suite.tasks), name
    assert [len(suite.tasks) for suite in PAPER_SUITES.values()] == [6, 12, 1]
    assert PAPER_SUITES["visda2017"].measure == "mean_class_accuracy"


OFFICE31_AVERAGES = "76.1 80.4 86.1 87.1 88.4 89.5 82.2 87.7 89.4 90.2 87.7 88.5 89.2 90.4 88.9 90.1"
HOME_AVERAGES = "46.1 56.3 65.8 66.2 67.9 68.1 68.4 57.6 64.9 63.3 69.4 65.8 66.3 67.8 70.6"
VISDA_AVERAGES = "52.4 61.1 71.9 77.0 80.4 81.5 57.4 72.1 82.4 73.9 75.9 83.2"
GTA5_AVERAGES = "36.6 42.4 42.7 43.2 43.8 46.1 44.6 47.2 45.2 48.1"


@pytest.mark.parametrize(
    ("table", "averages"),
    [
        (OFFICE31_PAPER, OFFICE31_AVERAGES),
        (OFFICE_HOME_PAPER, HOME_AVERAGES),
        (VISDA_CLASSES_PAPER, VISDA_AVERAGES),
        (GTA5_CLASSES_PAPER, GTA5_AVERAGES),
    ],
)
def test_the_rows_have_the_papers_averages(table, averages):
    """The paper prints them, so a wrong digit shows; it rounds as it likes by a tenth or so, and miscounts twice."""
    printed = dict(zip(table, map(float, averages.split()), strict=True))
    if table is GTA5_CLASSES_PAPER:
        assert [100 * row["GTA5-Cityscapes"] for row in GTA5_PAPER.values()] == pytest.approx(list(printed.values()))
    if table is VISDA_CLASSES_PAPER:
        assert [100 * row["train-validation"] for row in VISDA_PAPER.values()] == pytest.approx(list(printed.values()))
    miscounted = {"JADA (paper)": 86.28} if table is OFFICE31_PAPER else {"DTA (paper)": 81.98}
    for name, row in table.items():
        mean = 100 * sum(row.values()) / len(row)
        assert mean == pytest.approx(miscounted.get(name, printed[name]), abs=0.16), name


def read_paper_rows():
    """The cells of every line of the paper's tables, without its typesetting; 95.5 ± 0.1 is 95.5±0.1."""
    if not PAPER.exists():
        pytest.skip(f"no {PAPER}")
    text = re.sub(r"\\textbf|\\scriptsize|\\hline|[{}$~]", "", PAPER.read_text()).replace("\\pm", "±")
    lines = [re.sub(r"\s|\\\\", "", line).split("&") for line in text.splitlines()]
    return [cells[1:] for cells in lines if len(cells) > 1]


@pytest.mark.parametrize("table", [OFFICE31_PAPER, OFFICE_HOME_PAPER, VISDA_CLASSES_PAPER, GTA5_CLASSES_PAPER])
def test_the_numbers_stand_in_the_papers_source(table):
    rows = read_paper_rows()
    for name, row in table.items():
        wanted = [f"{100 * value:.1f}" for value in row.values()]
        assert any([cell if "." in cell else f"{cell}.0" for cell in cells[:-1]] == wanted for cells in rows), name


@pytest.mark.parametrize(
    ("means", "stds", "count"), [(OFFICE31_PAPER, OFFICE31_STDS, 3), (OFFICE_HOME_PAPER, OFFICE_HOME_STDS, 2)]
)
def test_the_error_bars_stand_in_the_appendix_beside_their_means(means, stds, count):
    assert len(stds) == count
    assert all(name.endswith("+ ParetoDA (paper)") for name in stds)
    rows = read_paper_rows()
    for name, row in stds.items():
        wanted = [f"{100 * means[name][task]:.1f}±{100 * std:.1f}" for task, std in row.items()]
        assert any(cells[:-1] == wanted for cells in rows), name
    assert sum("±" in cells[0] and len(cells) == len(wanted) + 1 for cells in rows) == count, "no row is left out"


def test_the_error_bars_belong_to_the_tables_of_the_suites():
    assert {name for name, suite in SUITES.items() if suite.reference_stds} == {
        "office31",
        "office31-jpeg",
        "office-home",
    }
    for suite in SUITES.values():
        for name, row in suite.reference_stds.items():
            assert list(row) == list(suite.references[name])


def test_the_classes_of_gta5_are_those_of_its_labels():
    suite = SUITES["gta5-cityscapes"]
    assert suite.references == GTA5_PAPER
    assert [*suite.class_references] == [*GTA5_PAPER]
    for row in suite.class_references.values():
        assert tuple(row) == find_table("cityscapes").names


def test_the_table_by_class_has_the_papers_columns_and_numbers():
    recalls = dict.fromkeys(VISDA_CLASSES_PAPER["DANN (paper)"], 0.25)
    facts = {"suite": "visda2017", "task": "train-validation", "seed": 0, "settings": {}}
    rows = [{**facts, "name": "ours", "per_class": {"chosen": recalls, "last": recalls}}]
    text = to_markdown(make_table(split_by_class(rows)), TableStyle(references=VISDA_CLASSES_PAPER))
    assert "| aeroplane | bicycle |" in text
    assert "| ours | **25.0** |" in text
    assert "| DANN + ParetoDA (paper) | 95.3 | 82.4 |" in text
    failed = [*rows, {**facts, "name": "theirs", "error": "died"}]
    assert "Failed runs" in to_markdown(make_table(split_by_class(failed)))


def test_classes_that_no_test_image_has_are_left_out_and_the_papers_order_is_kept():
    facts = {"suite": "gta5-cityscapes", "task": "GTA5-Cityscapes", "seed": 0, "settings": {}, "name": "ours"}
    overlaps = {"bicycle": 0.5, "road": 0.25, "train": None}
    rows = [{**facts, "per_class": {"chosen": overlaps, "last": overlaps}}]
    table = make_table(split_by_class(rows, "iou", ["road", "train", "bicycle"]), measure="iou")
    assert table.columns == ("road", "bicycle")
    assert not table.failed
    text = to_markdown(table, TableStyle(references=GTA5_CLASSES_PAPER))
    assert "| ours | **25.0** | **50.0** | **37.5** |" in text
    assert "| CBST + ParetoDA (paper) | 82.4 | 49.3 |" in text
    assert "Target iou (oracle)" in text


def test_the_protocol_reads_photographs_with_the_papers_networks():
    networks = {name: {task.settings["backbone"] for task in s.tasks.values()} for name, s in PAPER_SUITES.items()}
    assert networks == {"office31": {"resnet50"}, "office-home": {"resnet50"}, "visda2017": {"resnet101"}}
