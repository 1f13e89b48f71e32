"""The paper's suites are found in the layouts that people have, and its numbers are its numbers."""

from pathlib import Path

import numpy as np
import pytest
from bench.test_loading import COLOURS, write_images

from paretoda.bench.by_class import class_rows
from paretoda.bench.loading import load
from paretoda.bench.paper_suites import (
    OFFICE31_PAPER,
    OFFICE_HOME_PAPER,
    PAPER_SUITES,
    VISDA_CLASSES_PAPER,
    VISDA_PAPER,
)
from paretoda.report.table_text import markdown
from paretoda.report.tables import Look, make_table

PAPER = Path(__file__).parents[3] / "shared" / "spec" / "paper.tex"


def colours_fit(loaded):
    images = loaded.samples.read(np.arange(len(loaded.samples)))
    seen = [tuple(np.asarray(image)[0, 0].tolist()) for image in images]
    return seen == [COLOURS[loaded.classes[label]] for label in loaded.oracle_labels]


@pytest.mark.parametrize(
    ("suite", "task", "source", "target"),
    [
        ("office31", "A-W", "office31/amazon/images", "office31/webcam/images"),
        ("office31", "W-D", "office31/webcam", "office31/dslr"),
        ("office-home", "Ar-Rw", "office-home/Art", "office-home/Real World"),
        ("office-home", "Rw-Cl", "office-home/RealWorld", "office-home/Clipart"),
        ("office-home", "Pr-Rw", "office-home/Product", "office-home/Real_World"),
        ("visda2017", "train-validation", "visda2017/train", "visda2017/validation"),
    ],
)
def test_folders_are_found_in_every_layout_with_their_classes(tmp_path, suite, task, source, target):
    write_images(tmp_path / source)
    write_images(tmp_path / target, names=("m", "n", "o"))
    loaded = load(PAPER_SUITES[suite].tasks[task], tmp_path, tmp_path / "work")
    assert (loaded.source, loaded.target) == (tmp_path / source, tmp_path / target)
    assert loaded.classes == tuple(COLOURS)
    assert colours_fit(loaded)
    assert len(loaded.oracle_labels) == 9


def test_lists_of_images_are_found_too(tmp_path):
    root = tmp_path / "office31"
    for domain in ("amazon", "webcam"):
        write_images(root / "files" / domain)
        files = sorted((root / "files" / domain).rglob("*.png"), key=lambda path: path.name)
        lines = [f"{file.relative_to(root)} {list(COLOURS).index(file.parent.name)}\n" for file in files]
        (root / f"{domain}.txt").write_text("".join(lines))
    loaded = load(PAPER_SUITES["office31"].tasks["A-W"], tmp_path, tmp_path / "work")
    assert loaded.classes == ("0", "1", "2")
    assert loaded.oracle_labels.tolist() == [2, 1, 0, 2, 1, 0]


def test_every_column_of_the_paper_is_a_task():
    for name, suite in PAPER_SUITES.items():
        for row in suite.references.values():
            assert set(row) == set(suite.tasks), name
    assert [len(suite.tasks) for suite in PAPER_SUITES.values()] == [6, 12, 1]
    assert PAPER_SUITES["visda2017"].measure == "mean_class_accuracy"


@pytest.mark.parametrize(
    ("table", "averages"),
    [
        (OFFICE31_PAPER, [76.1, 82.2, 90.2, 87.7, 90.4, 88.9, 90.1]),
        (OFFICE_HOME_PAPER, [46.1, 68.1, 57.6, 69.4, 65.8, 70.6]),
        (VISDA_CLASSES_PAPER, [52.4, 57.4, 82.4, 73.9, 83.2]),
    ],
)
def test_the_rows_have_the_papers_averages(table, averages):
    """The paper prints them, so a wrong digit shows; it rounds as it likes by a tenth or so."""
    means = [100 * sum(row.values()) / len(row) for row in table.values()]
    np.testing.assert_allclose(means, averages, atol=0.16)
    if table is VISDA_CLASSES_PAPER:
        assert [100 * row["train-validation"] for row in VISDA_PAPER.values()] == pytest.approx(averages)


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
    text = markdown(make_table(class_rows(rows)), Look(references=VISDA_CLASSES_PAPER))
    assert "| aeroplane | bicycle |" in text
    assert "| ours | **25.0** |" in text
    assert "| DANN + ParetoDA (paper) | 95.3 | 82.4 |" in text
    failed = [*rows, {**facts, "name": "theirs", "error": "died"}]
    assert "Failed runs" in markdown(make_table(class_rows(failed)))


def test_the_protocol_reads_photographs_with_the_papers_networks():
    networks = {name: {task.settings["backbone"] for task in s.tasks.values()} for name, s in PAPER_SUITES.items()}
    assert networks == {"office31": {"resnet50"}, "office-home": {"resnet50"}, "visda2017": {"resnet101"}}
