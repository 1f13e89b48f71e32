"""The paper's benchmarks are found in the folders that people have, and what is wrong with a folder is told."""

import numpy as np
import pytest
from bench.copies import LAYOUTS, few, official, write_classes, write_list

from paretoda.bench.layouts import find_home, find_place, read_facts
from paretoda.bench.loading import load_task
from paretoda.bench.request import BenchRequest, plan_bench
from paretoda.bench.suites import PAPER_SUITES
from paretoda.errors import DataError
from paretoda.tasks import find_task

HOMES = {
    "office31": ("", "office31", "Office-31", "office", "office31/domain_adaptation_images", "Original_images"),
    "office-home": ("", "office-home", "office_home", "OfficeHome", "OfficeHome/OfficeHomeDataset_10072016"),
    "visda2017": ("", "visda2017", "VisDA-2017", "visda", "VISDA-C"),
}
SMALL = {suite: {domain: few(suite, domain) for domain in facts.images} for suite, facts in read_facts().items()}


def test_numbers_by_class_add_up():
    for suite, facts in read_facts().items():
        assert suite in PAPER_SUITES
        assert len(set(facts.classes)) == len(facts.classes)
        for domain, counts in facts.per_class.items():
            assert sum(counts.values()) == facts.images[domain], (suite, domain)
    assert sum(read_facts()["office31"].images.values()) == 4110
    assert sum(read_facts()["office-home"].images.values()) == 15_588


def test_numbers_are_those_of_the_part_that_office_caltech_shares_with_office31(shared_data):
    """A look at real data: its ten classes are ten of the thirty-one."""
    names = {"backpack": "back_pack", "laptop": "laptop_computer"}
    for domain, counts in read_facts()["office31"].per_class.items():
        with np.load(shared_data / "office-caltech10" / f"{domain}-surf.npz") as file:
            found = dict(zip(file["classes"].tolist(), np.bincount(file["y"]).tolist(), strict=True))
        assert {names.get(name, name): count for name, count in found.items()}.items() <= counts.items()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("suite", HOMES)
def test_a_task_is_loaded_from_every_layout_with_the_names_of_its_classes(tmp_path, suite, layout):
    LAYOUTS[layout](suite, tmp_path, SMALL[suite])
    tasks = list(PAPER_SUITES[suite].tasks.values())
    for task in (tasks[0], tasks[-1]):
        loaded = load_task(find_task("classification"), task, tmp_path, tmp_path / "work")
        assert loaded.test.classes == tuple(sorted(read_facts()[suite].classes))
        folders = [path.parent.name for path in loaded.test.samples.paths]
        assert [loaded.test.classes[label] for label in loaded.test.oracle_labels] == folders
        assert loaded.test.samples.labels is None
        assert getattr(loaded.target, "labels", None) is None, "nothing that could leak goes into the training"
        assert len(folders) == 2 * len(loaded.test.classes)


@pytest.mark.parametrize(("suite", "home"), [(suite, home) for suite, homes in HOMES.items() for home in homes])
def test_the_folder_may_have_any_of_its_names(tmp_path, suite, home):
    official(suite, tmp_path / home, SMALL[suite])
    assert find_home(suite, tmp_path) == tmp_path / home


def test_other_spellings_of_a_domain(tmp_path):
    for name in ("RealWorld", "real_world", "Real World"):
        write_classes(tmp_path / name / name, SMALL["office-home"]["Art"])
        assert find_place("office-home", "Real World", tmp_path / name).path == tmp_path / name / name


def places(folder):
    home = find_home("office31", folder)
    return [find_place("office31", domain, home) for domain in SMALL["office31"]]


def wrong(tmp_path, make):
    """The sentence about a folder that `make` has changed."""
    official("office31", tmp_path, SMALL["office31"])
    assert len(places(tmp_path)) == 3
    make(tmp_path)
    with pytest.raises(DataError) as error:
        places(tmp_path)
    return str(error.value)


def test_two_layouts_in_one_domain_are_refused(tmp_path):
    said = wrong(tmp_path, lambda home: write_classes(home / "dslr", {"mug": 1}))
    assert f"two layouts are mixed in {tmp_path / 'dslr'}: images is there beside mug; keep the classes in one" in said


def test_a_domain_that_is_there_twice_is_refused(tmp_path):
    said = wrong(tmp_path, lambda home: write_classes(home / "DSLR", {"mug": 1}))
    assert f"dslr is in {tmp_path / 'DSLR'} and in {tmp_path / 'dslr'}; remove one of them" in said


def test_a_benchmark_that_is_there_twice_is_refused(tmp_path):
    said = wrong(tmp_path, lambda home: official("office31", home / "office31", SMALL["office31"]))
    assert f"is in {tmp_path} and in {tmp_path / 'office31'}; give the folder of one" in said


def test_a_missing_domain_is_told(tmp_path):
    said = wrong(tmp_path, lambda home: (home / "webcam").rename(home.parent / f"{home.name}-gone"))
    assert f"{tmp_path} has no domain 'webcam' of office31, neither its folder nor a list webcam.txt" in said


@pytest.mark.parametrize(
    ("made", "given", "said"),
    [
        (
            "visda2017",
            "",
            "has no domain of office31 (amazon, dslr, webcam); it looks like visda2017: give --suite",
        ),
        ("office31", "amazon/images", "it has classes, so it looks like one domain: give the folder that has them all"),
        ("office31", "amazon/images/mug", "it has frame_0001.jpg, frame_0002.jpg; give the folder"),
        ("office31", "nowhere", "is not a folder; give the one that has the images of office31"),
    ],
)
def test_a_wrong_folder_is_told_and_what_to_give_instead(tmp_path, made, given, said):
    official(made, tmp_path, SMALL[made])
    with pytest.raises(DataError) as error:
        find_home("office31", tmp_path / given)
    assert said in str(error.value)


def test_an_archive_that_is_not_unpacked_and_an_empty_folder_are_told(tmp_path):
    with pytest.raises(DataError, match="it is empty"):
        find_home("office-home", tmp_path)
    (tmp_path / "OfficeHomeDataset_10072016.zip").touch()
    with pytest.raises(DataError, match=r"unpack OfficeHomeDataset_10072016\.zip first"):
        find_home("office-home", tmp_path)


def test_a_list_must_name_every_class_once_and_its_images(tmp_path):
    names = list(SMALL["office31"]["dslr"])
    write_classes(tmp_path / "files", SMALL["office31"]["dslr"])
    write_list(tmp_path / "dslr.txt", tmp_path / "files", tmp_path, names)
    place, text = find_place("office31", "dslr", tmp_path), (tmp_path / "dslr.txt").read_text()
    assert place.samples().labels.classes == tuple(sorted(names))
    (tmp_path / "dslr.txt").write_text(text.replace("back_pack/frame_0001.jpg 0", "back_pack/frame_0001.jpg 1"))
    with pytest.raises(DataError, match=r"the label 1 stands for back_pack and bike;"):
        place.samples()
    (tmp_path / "dslr.txt").write_text(text.replace("back_pack/frame_0001.jpg 0", "back_pack/frame_0001.jpg 77"))
    with pytest.raises(DataError, match=r"the folder back_pack stands for 0 and 77;"):
        place.samples()
    (tmp_path / "dslr.txt").write_text(text.replace("files/", "elsewhere/"))
    with pytest.raises(DataError, match=r"elsewhere/back_pack/frame_0001\.jpg is neither beside it nor one folder"):
        place.samples()


def test_a_bench_without_the_images_says_so_once_and_before_any_run(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "images-200px.zip").touch()
    request = BenchRequest(
        "office31", ("D-W",), ("dann",), ("none",), ("linear",), (), None, (), 1, None, {}, keep=False, judge=None
    )
    with pytest.raises(DataError, match=r"unpack images-200px\.zip first"):
        plan_bench(request, tmp_path / "out", tmp_path / "data")
