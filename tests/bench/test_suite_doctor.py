"""`paretoda doctor --suite`: a whole copy passes in every layout, and each fault of a copy is told."""

import shutil
from dataclasses import replace

import pytest
from bench.copies import LAYOUTS, domainbed, few, lists_alone, official, published, write_classes

import paretoda.bench.layouts
from paretoda.bench.layouts import examine_suite, find_facts, read_facts


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """All 4,110 images of Office-31, as the official archive has them."""
    home = tmp_path_factory.mktemp("office31") / "domain_adaptation_images"
    official("office31", home, {domain: published("office31", domain) for domain in find_facts("office31").images})
    return home


@pytest.fixture
def copy(whole, tmp_path):
    """One that a test may spoil."""
    return shutil.copytree(whole, tmp_path / "office31", copy_function=lambda a, b: b and shutil.os.link(a, b))


def errors(suite, folder):
    return [finding.message for finding in examine_suite(suite, folder).findings if finding.severity == "error"]


def test_a_whole_office31_passes(inside, whole):
    for given in (whole, whole.parent):
        end = inside("doctor", "--suite", "office31", given, "--json")
        assert end.code == 0, end
        assert end.last_line["errors"] == end.last_line["warnings"] == 0
        assert {name: line["images"] for name, line in end.last_line["domains"].items()} == find_facts(
            "office31"
        ).images
    said = inside("doctor", "--suite", "office31", whole).out
    assert "amazon/images/CLASS" in said
    assert "0 errors, 0 warnings: this is office31 as published." in said


@pytest.fixture
def small(monkeypatch):
    """A benchmark with two images a class instead of up to 17,360."""

    def shrink(suite):
        known = find_facts(suite)
        counts = {domain: few(suite, domain) for domain in known.images}
        facts = replace(
            known,
            images={domain: sum(classes.values()) for domain, classes in counts.items()},
            per_class={domain: counts[domain] for domain in known.per_class},
        )
        monkeypatch.setattr(paretoda.bench.layouts, "find_facts", lambda _: facts)
        return counts

    return shrink


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("suite", ["office31", "office-home", "visda2017"])
def test_a_whole_copy_passes_in_every_layout_and_what_is_not_known_is_told(small, tmp_path, suite, layout):
    counts = small(suite)
    LAYOUTS[layout](suite, tmp_path, counts)
    report = examine_suite(suite, tmp_path)
    assert {finding.severity for finding in report.findings} <= {"info"}
    unknown = [finding.domain for finding in report.findings if "is not known here" in finding.message]
    assert unknown == (["Clipart"] if suite == "office-home" else [])
    assert report.images == {domain: sum(classes.values()) for domain, classes in counts.items()}
    image = next(tmp_path.rglob("frame_0002.jpg"))
    image.unlink()
    (said,) = errors(suite, tmp_path)
    assert "instead of" in said or "cannot be read" in said


def test_one_image_too_few_is_told_by_class(copy):
    (copy / "dslr/images/mug/frame_0008.jpg").unlink()
    (said,) = errors("office31", copy)
    assert said.startswith("dslr has 497 images instead of 498 (mug 7 instead of 8); unpack the archive again")


def test_an_image_in_the_wrong_class_is_told_although_the_total_is_right(copy):
    (copy / "dslr/images/mug/frame_0008.jpg").rename(copy / "dslr/images/pen/frame_0099.jpg")
    (said,) = errors("office31", copy)
    assert "dslr has 498 images instead of 498 (mug 7 instead of 8, pen 11 instead of 10)" in said


def test_a_missing_class_is_told_once(copy):
    shutil.rmtree(copy / "webcam/images/mug")
    assert errors("office31", copy) == [
        "webcam has no images of mug; unpack the archive again, or rename the folder.",
    ]


def test_a_renamed_class_is_told_with_its_name(copy):
    (copy / "webcam/images/back_pack").rename(copy / "webcam/images/backpack")
    assert errors("office31", copy) == [
        "webcam has no images of back_pack; unpack the archive again, or rename the folder.",
        "webcam has backpack, which the benchmark does not have; did you mean 'back_pack'?",
    ]


def test_a_class_too_many_is_told(copy):
    write_classes(copy / "webcam/images", {"zebra": 1})
    assert errors("office31", copy) == ["webcam has zebra, which the benchmark does not have; move it away."]


def test_a_broken_file_is_told(copy):
    broken = copy / "amazon/images/mug/frame_0001.jpg"
    content = broken.read_bytes()[:-20]
    broken.unlink()
    broken.write_bytes(content)
    (said,) = errors("office31", copy)
    assert said == "amazon: 1 of 2817 image files cannot be read (mug/frame_0001.jpg); copy them again."


def test_all_faults_are_told_at_once_and_the_command_ends_with_2(inside, copy):
    shutil.rmtree(copy / "dslr")
    shutil.rmtree(copy / "webcam/images/mug")
    write_classes(copy / "amazon", {"mug": 1})
    end = inside("doctor", "--suite", "office31", copy, "--json")
    assert end.code == 2
    assert [finding["domain"] for finding in end.last_line["findings"]] == ["amazon", "dslr", "webcam"]
    assert end.last_line["errors"] == 3
    said = inside("doctor", "--suite", "office31", copy).out
    assert "3 errors, 0 warnings: numbers on this copy of office31 cannot be compared with others." in said


def test_lists_beside_folders_are_a_warning(small, tmp_path):
    counts = small("office31")
    lists_alone("office31", tmp_path, {"amazon": counts["amazon"]})
    domainbed("office31", tmp_path, {name: counts[name] for name in ("dslr", "webcam")})
    (finding,) = examine_suite("office31", tmp_path).findings
    assert finding.severity == "warning"
    assert "amazon come from lists and dslr, webcam from folders" in finding.message


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--suite", "office3", "."), "did you mean 'office31'?"),
        (("--suite", "digits", "."), "there is no benchmark with known numbers 'digits'"),
        (("--suite", "office31", "--source", "x"), "leave out --source"),
        (("somewhere",), "give --suite NAME for the benchmark in somewhere"),
        (("--source", "x"), "give --source and --target, or --suite NAME"),
    ],
)
def test_a_question_that_makes_no_sense_is_one_sentence(inside, arguments, said):
    assert said in inside("doctor", *arguments).sentence


def test_a_folder_without_the_benchmark(inside, tmp_path):
    end = inside("doctor", "--suite", "office31", tmp_path)
    assert end.code == 2
    assert "1 error, 0 warnings: office31 was not found." in end.out


def test_without_a_path_the_data_folder_counts(inside, whole, monkeypatch):
    monkeypatch.setenv("PARETODA_DATA", str(whole.parent))
    assert inside("doctor", "--suite", "office31").code == 0


def test_every_benchmark_of_the_paper_has_its_facts():
    assert {suite: len(facts.classes) for suite, facts in read_facts().items()} == {
        "office31": 31,
        "office-home": 65,
        "visda2017": 12,
    }
