"""The numbers of the paper's suites are its numbers, and every row that can be run has a number beside it."""

from pathlib import Path

import pytest

from paretoda.bench.paper_numbers import OFFICE31_PAPER, OFFICE_HOME_PAPER, VISDA_CLASSES_PAPER, VISDA_PAPER
from paretoda.bench.results import split_by_class
from paretoda.bench.suites import PAPER_SUITES
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


@pytest.mark.parametrize(
    ("table", "averages"),
    [
        (OFFICE31_PAPER, OFFICE31_AVERAGES),
        (OFFICE_HOME_PAPER, HOME_AVERAGES),
        (VISDA_CLASSES_PAPER, VISDA_AVERAGES),
    ],
)
def test_the_rows_have_the_papers_averages(table, averages):
    """The paper prints them, so a wrong digit shows; it rounds as it likes by a tenth or so, and miscounts twice."""
    printed = dict(zip(table, map(float, averages.split()), strict=True))
    if table is VISDA_CLASSES_PAPER:
        assert [100 * row["train-validation"] for row in VISDA_PAPER.values()] == pytest.approx(list(printed.values()))
    miscounted = {"JADA (paper)": 86.28} if table is OFFICE31_PAPER else {"DTA (paper)": 81.98}
    for name, row in table.items():
        mean = 100 * sum(row.values()) / len(row)
        assert mean == pytest.approx(miscounted.get(name, printed[name]), abs=0.16), name


def test_the_numbers_stand_in_the_papers_source():
    if not PAPER.exists():
        pytest.skip(f"no {PAPER}")
    lines = [line.replace("\\textbf{", "").replace("}", "") for line in PAPER.read_text().splitlines()]
    rows = [[cell.strip() for cell in line.split("&")[1:]] for line in lines]
    for table in (OFFICE31_PAPER, OFFICE_HOME_PAPER, VISDA_CLASSES_PAPER):
        for name, row in table.items():
            wanted = [f"{100 * value:.1f}" for value in row.values()]
            assert any(cells[: len(wanted)] == wanted for cells in rows), name


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


def test_the_protocol_reads_photographs_with_the_papers_networks():
    networks = {name: {task.settings["backbone"] for task in s.tasks.values()} for name, s in PAPER_SUITES.items()}
    assert networks == {"office31": {"resnet50"}, "office-home": {"resnet50"}, "visda2017": {"resnet101"}}
