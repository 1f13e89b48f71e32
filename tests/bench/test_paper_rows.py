"""The paper's rows are contenders by name, with a preset of one's choice, and the numbers stand beside them."""

import csv
import io
import json

import pytest
from bench.copies import few, official, write_classes

from paretoda.bench.contenders import Contender, RunSpec
from paretoda.bench.paper import list_absent_rows, list_paper_rows, make_paper_contenders
from paretoda.bench.suites import PAPER_SUITES
from paretoda.errors import SettingsError
from paretoda.tasks.settings import make_settings
from paretoda.training.optimisers import inverse_decay

TINY = ("--backbone", "cnn", "--image-size", 16, "--augment", "flip", "--steps", 3, "--batch-size", 6)
TINY = (*TINY, "--bottleneck", 8, "--select", "last", "--seeds", 1, "--jobs", 1)
NARROW = ("--options", "alignment.hidden=8")


@pytest.mark.parametrize("suite", PAPER_SUITES)
def test_all_rows_but_those_of_methods_that_are_not_here_can_be_run(suite):
    made = make_paper_contenders(suite, {"steps": 7})
    assert [contender.name for contender in made] + list_absent_rows(suite) != []
    assert {contender.name for contender in made} | {*list_absent_rows(suite)} == {*list_paper_rows(suite)}
    assert {name.rpartition(" + ")[2] for name in list_absent_rows(suite)} <= {"MetaAlign"}
    for contender in made:
        assert make_settings(contender.settings).steps == 7


def test_a_row_is_what_the_paper_means():
    rows = {contender.name: contender.settings for contender in make_paper_contenders("office31", {})}
    assert rows["ResNet-50"] == {"method": "source-only", "target_loss": "none", "scheme": "linear"}
    assert rows["BNM"] == {"method": "source-only", "target_loss": "bnm", "scheme": "linear"}
    assert rows["CDAN + MCC"] == {"method": "cdan-e", "target_loss": "mcc", "scheme": "linear"}
    pareto = {"method": "mdd", "target_loss": "tcm", "scheme": "paretoda-paper", "guide": "tcm"}
    assert rows["MDD + ParetoDA"] == pareto
    with pytest.raises(SettingsError, match="there is no table of the paper for the suite 'digits'"):
        make_paper_contenders("digits", {})


def test_a_row_is_called_after_a_network_only_if_it_has_this_network():
    def first(suite, **same):
        return make_paper_contenders(suite, same)[0]

    assert [first(suite).name for suite in PAPER_SUITES] == ["ResNet-50", "ResNet-50", "ResNet-101"]
    assert first("office31", backbone="cnn").name == "source-only"
    jpeg = make_paper_contenders("office31-jpeg", {"preset": "paper"})
    assert jpeg[0].name == "source-only"
    assert [row.name for row in jpeg[1:]] == list_paper_rows("office31")[1:]
    assert jpeg[0].settings["method"] == "source-only"


def test_table_4_is_the_methods_of_segmentation():
    rows = {row.name: row.settings for row in make_paper_contenders("gta5-cityscapes", {"task": "segmentation"})}
    assert list(rows) == list_paper_rows("gta5-cityscapes")
    assert list_absent_rows("gta5-cityscapes") == []
    plain = {"task": "segmentation", "target_loss": "none", "scheme": "linear"}
    assert rows["ResNet-101"] == {**plain, "method": "source-only"}
    assert rows["AdvEnt"] == {**plain, "method": "advent"}
    assert rows["CLAN"] == {**plain, "method": "clan", "levels": 1}, "it has two classifiers of one level"
    pareto = {"task": "segmentation", "target_loss": "tcm", "scheme": "paretoda-paper", "guide": "tcm"}
    assert rows["CBST + ParetoDA"] == {**pareto, "method": "cbst", "levels": 1}
    small = make_paper_contenders("gta5-cityscapes", {"task": "segmentation", "backbone": "dilated"})
    assert small[0].name == "source-only"


def test_a_preset_is_part_of_a_run_as_the_settings_that_it_stands_for():
    contender = Contender("x", {"method": "mdd", "target_loss": "none", "scheme": "linear", "preset": "tll"})
    home, office = (RunSpec(suite, "task", contender, 0).settings for suite in ("office-home", "office31"))
    assert (home["bottleneck"], office["bottleneck"], home["lr"]) == (2048, 1024, 0.004)
    assert "preset" not in home
    written = Contender("y", {key: value for key, value in office.items() if key != "seed"})
    assert RunSpec("office31", "task", written, 0).key == RunSpec("office31", "task", contender, 0).key
    tuned = RunSpec("office31", "task", contender, 0, {"lr": 0.5}).settings
    assert (tuned["lr"], tuned["bottleneck"]) == (0.5, 1024)


def test_the_bench_runs_the_rows_with_a_preset_and_says_which_it_cannot(inside, tmp_path):
    classes = {name: few("office-home", "Art")[name] * 6 for name in ("Mug", "Pen")}
    for domain in ("Art", "Clipart"):
        write_classes(tmp_path / "office_home" / domain, classes)
    rows = tmp_path / "rows.toml"
    rows.write_text('["own"]\nmethod = "dann"\npreset = "paper"\nsteps = 2\noptions = ["target.width=8"]\n')
    given = ("bench", "office-home", "--data", tmp_path, "--tasks", "Ar-Cl", *TINY, *NARROW)
    end = inside(*given, "--contenders", rows, "--preset", "tll", "--methods", "dann", "--target-losses", "none",
                 "--schemes", "linear", "--out", tmp_path / "out")  # fmt: skip
    assert end.code == 0, end.err
    lines = [json.loads(line) for line in (tmp_path / "out" / "runs.jsonl").read_text().splitlines()]
    configs = {line["name"]: line["config"] for line in lines}
    assert configs["own"]["scheme"] == "paretoda-paper"
    assert (configs["own"]["lr"], configs["own"]["steps"]) == (0.03, 2)
    assert (configs["dann, sum"]["lr"], configs["dann, sum"]["decay"], configs["dann, sum"]["steps"]) == (0.01, 30, 3)
    assert "| DANN + MetaAlign (paper) | 48.6 |" in end.out
    names = [row["name"] for row in csv.DictReader(io.StringIO((tmp_path / "out" / "chosen.csv").read_text()))]
    assert names[:2] == ["own", "dann, sum"]


def test_decay_reaches_the_learning_rate():
    assert inverse_decay(1.0, 30.0) == pytest.approx(31**-0.75)
    assert inverse_decay(0.5, 0.0) == 1.0


def test_visda_trains_on_the_middle_of_the_images_and_the_others_on_crops():
    augment = {name: {task.settings["augment"] for task in s.tasks.values()} for name, s in PAPER_SUITES.items()}
    assert augment == {"office31": {"standard"}, "office-home": {"standard"}, "visda2017": {"flip"}}


def test_visda_has_a_table_by_class_also_from_lists_of_numbers(inside, tmp_path):
    official("visda2017", tmp_path / "files", {name: few("visda2017", name, 3) for name in ("train", "validation")})
    for domain in ("train", "validation"):
        lines = (tmp_path / "files" / domain / "image_list.txt").read_text().splitlines()
        (tmp_path / f"{domain}_list.txt").write_text("".join(f"files/{domain}/{line}\n" for line in lines))
    given = ("bench", "visda2017", "--data", tmp_path, *TINY, "--methods", "source-only")
    end = inside(*given, "--out", tmp_path / "out")
    assert end.code == 0, end.err
    assert "| aeroplane | bicycle |" in end.out
    assert "| CDAN + BSP (paper) | 92.4 | 61.0 |" in end.out
