"""A task's data are those of the protocol, and labels stand beside the right samples."""

import zipfile
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from paretoda.bench import loading
from paretoda.bench.loading import complete_settings, draw_labelled, needs_files
from paretoda.bench.suites import SUITES, find_data_folder
from paretoda.errors import DataError
from paretoda.tasks import find_task
from paretoda.tasks.suites import Part, SuiteTask

load_task = partial(loading.load_task, find_task("classification"))
COLOURS = {"blue": (0, 0, 255), "green": (0, 255, 0), "red": (255, 0, 0)}


def write_images(folder, *, classes=tuple(COLOURS), names=("z", "a")):
    """Images of one colour a class; file names do not follow the classes' order."""
    for place, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for number, letter in enumerate(names):
            Image.new("RGB", (8, 8), COLOURS[name]).save(folder / name / f"{letter}{7 - place}{number}.png")


def write_npz(path, n, classes=("a", "b")):
    path.parent.mkdir(parents=True, exist_ok=True)
    x = np.arange(n, dtype=np.float32)[:, None] * np.ones((1, 3), dtype=np.float32)
    np.savez(path, x=x, y=np.arange(n) % len(classes), classes=list(classes))


def test_labels_of_a_folder_stand_beside_their_images(tmp_path):
    write_images(tmp_path / "s")
    write_images(tmp_path / "t")
    loaded = load_task(SuiteTask(Part("s"), Part("t")), tmp_path, tmp_path / "work")
    images = loaded.test.samples.read(np.arange(len(loaded.test.samples)))
    shown = [loaded.test.classes[label] for label in loaded.test.oracle_labels]
    assert [COLOURS[name] for name in shown] == [tuple(np.asarray(image)[0, 0].tolist()) for image in images]
    assert shown != sorted(shown), "this is no test unless the two orders differ"


def test_the_targets_labels_are_places_in_the_sources_classes(tmp_path):
    write_images(tmp_path / "s")
    write_images(tmp_path / "t", classes=("green", "red"))
    loaded = load_task(SuiteTask(Part("s"), Part("t")), tmp_path, tmp_path / "work")
    assert loaded.test.classes == ("blue", "green", "red")
    assert sorted(loaded.test.oracle_labels) == [1, 1, 2, 2]
    write_npz(tmp_path / "s.npz", 6, ("x", "y", "z"))
    write_npz(tmp_path / "t.npz", 4, ("z", "x"))
    loaded = load_task(SuiteTask(Part("s.npz"), Part("t.npz")), tmp_path, tmp_path / "work")
    np.testing.assert_array_equal(loaded.test.oracle_labels[loaded.target[:, 0].argsort()], [2, 0, 2, 0])


def test_an_image_outside_the_classes_cannot_be_counted(tmp_path):
    write_images(tmp_path / "s")
    write_images(tmp_path / "t")
    Image.new("RGB", (8, 8)).save(tmp_path / "t" / "stray.png")
    with pytest.raises(DataError, match=r"stray\.png is not in the folder of a class"):
        load_task(SuiteTask(Part("s"), Part("t")), tmp_path, tmp_path / "work")


def test_a_subset_is_drawn_with_a_fixed_seed_from_the_first_samples_only(tmp_path):
    write_npz(tmp_path / "s.npz", 100)
    write_npz(tmp_path / "t.npz", 50)
    task = SuiteTask(Part("s.npz", take=20, of=60), Part("t.npz", take=10))
    first, second = (load_task(task, tmp_path, tmp_path / "work") for _ in range(2))
    x, y, _ = first.source
    np.testing.assert_array_equal(x, second.source[0])
    np.testing.assert_array_equal(first.target, second.target)
    assert len(np.unique(x[:, 0])) == 20
    assert x.max() < 60
    assert x.max() > 20, "drawn, not cut off"
    np.testing.assert_array_equal(y, x[:, 0] % 2)
    assert len(first.target) == 10


def test_mnist_to_mnist_m_draws_none_of_the_digits_that_mnist_m_is_made_of():
    tasks = SUITES["mnist-usps"].tasks
    assert {tasks[name].source.of for name in ("M-N", "M-N small")} == {54_000}


def test_an_archive_is_unpacked_once_and_its_layout_is_found(tmp_path):
    write_images(tmp_path / "raw" / "s")
    write_images(tmp_path / "raw" / "t")
    (tmp_path / "data" / "deep").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "data" / "deep" / "images.zip", "w") as archive:
        for file in (tmp_path / "raw").rglob("*.png"):
            archive.write(file, file.relative_to(tmp_path / "raw"))
    task = SuiteTask(Part("deep/images/s"), Part("deep/images/t"))
    loaded = load_task(task, tmp_path / "data", tmp_path / "work")
    assert loaded.source == tmp_path / "work" / "deep" / "images" / "s"
    assert len(loaded.test.oracle_labels) == 6
    (tmp_path / "data" / "deep" / "images.zip").write_bytes(b"not read again")
    assert load_task(task, tmp_path / "data", tmp_path / "work").test.classes == loaded.test.classes
    assert [path.name for path in (tmp_path / "work" / "deep").iterdir()] == ["images"], "nothing is left behind"


def test_missing_files_and_folders_are_told(tmp_path, monkeypatch):
    task = SuiteTask(Part("s.npz"), Part("printed"))
    with pytest.raises(DataError, match=r"s\.npz is missing"):
        load_task(task, tmp_path, tmp_path)
    with pytest.raises(DataError, match="--data"):
        load_task(task, None, tmp_path)
    np.savez(tmp_path / "s.npz", x=np.zeros((2, 2)))
    with pytest.raises(DataError, match="has no y and no classes"):
        load_task(task, tmp_path, tmp_path)
    monkeypatch.setenv("PARETODA_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="nowhere"):
        find_data_folder()
    assert find_data_folder(tmp_path) == tmp_path
    (tmp_path / "images.zip").touch()
    with pytest.raises(DataError, match="is an archive; unpack it and give --data the folder"):
        find_data_folder(tmp_path / "images.zip")


def test_the_embedded_suite_needs_no_files(tmp_path):
    embedded = ("digits", "digits-sources", "driving", "driving-tilted", "turned-digits", "diabetes")
    assert not any(needs_files(task) for name in embedded for task in SUITES[name].tasks.values())
    assert all(needs_files(task) for name in SUITES if name not in embedded for task in SUITES[name].tasks.values())
    loaded = load_task(SUITES["digits"].tasks["printed-handwritten"], None, tmp_path)
    assert len(loaded.test.samples) == len(loaded.test.oracle_labels) == 1797


@pytest.mark.parametrize("name", ["pacs", "office-caltech10", "office-caltech10-deep", "development"])
def test_the_real_files_are_where_the_suite_says(shared_data, tmp_path, name):
    task = next(iter(SUITES[name].tasks.values()))
    loaded = load_task(task, shared_data, tmp_path)
    assert len(loaded.target) == len(loaded.test.oracle_labels) > 500
    assert set(loaded.test.oracle_labels) == set(range(len(loaded.test.classes)))


def zip_images(archive, domains, raw):
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as file:
        for domain in domains:
            write_images(raw / domain)
        for image in raw.rglob("*.png"):
            file.write(image, image.relative_to(raw))


@pytest.mark.parametrize(
    ("name", "archive", "side", "domains"),
    [
        ("office-caltech10-jpeg", "office-caltech10/images-160px.zip", 160, ("amazon", "caltech10", "dslr", "webcam")),
        ("pacs-jpeg", "pacs/images-144px.zip", 144, ("art_painting", "cartoon", "photo")),
    ],
)
def test_the_suites_of_photographs_unpack_their_archive_and_freeze_the_backbone(tmp_path, name, archive, side, domains):
    data, work = tmp_path / "data", tmp_path / "work"
    zip_images(data / archive, domains, tmp_path / "raw")
    weights = data / "weights" / "efficientnet-lite0.safetensors"
    weights.parent.mkdir()
    weights.touch()
    assert len(SUITES[name].tasks) == len(domains) * (len(domains) - 1)
    for task in SUITES[name].tasks.values():
        assert len(load_task(task, data, work).test.oracle_labels) == 6
        settings = complete_settings(task, data, work)
        assert (settings["frozen"], settings["image_size"]) == (True, side)
        assert settings["backbone_weights"] == str(weights)
        same = complete_settings(task, data, work, {"backbone": "efficientnet-lite0", "image_size": 99})
        assert same == {**settings, "image_size": 99}
        other = complete_settings(task, data, work, {"backbone": "efficientnet-lite1"})
        assert "backbone_weights" not in other  # those of the suite are another network's
        assert complete_settings(task, data, work, {"backbone_weights": "none"})["backbone_weights"] == "none"


def test_a_damaged_archive_is_told_and_leaves_nothing(tmp_path):
    archive = tmp_path / "data" / "pacs" / "images-144px.zip"
    zip_images(archive, ("art_painting", "cartoon"), tmp_path / "raw")
    content = archive.read_bytes()
    archive.write_bytes(bytes(60) + content[60:])
    with pytest.raises(DataError, match=r"images-144px\.zip is damaged .*; copy it again"):
        load_task(SUITES["pacs-jpeg"].tasks["A-C"], tmp_path / "data", tmp_path / "work")
    assert not (tmp_path / "work" / "pacs" / "images-144px").exists()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=50), st.integers(1, 6), st.integers(0, 3))
def test_labelled_samples_are_so_many_of_each_class_and_no_part_of_the_rest(labels, count, seed):
    y = np.array(labels)
    few, rest = draw_labelled((np.arange(len(y)), y, list("abcd")), count, seed)
    assert sorted([*few[0], *rest[0]]) == list(range(len(y)))
    for label in set(labels):
        assert (few[1] == label).sum() == min(count, (y == label).sum())
    assert np.array_equal(y[few[0]], few[1])
    assert np.array_equal(y[rest[0]], rest[1])


def test_labelled_samples_are_not_drawn_from_folders(tmp_path):
    with pytest.raises(DataError, match=r"take a suite of \.npz files"):
        draw_labelled(tmp_path, 1, 0)


def test_a_suite_with_labels_hands_them_to_the_run_and_not_to_the_table(tmp_path):
    for name in ("s", "t"):
        write_npz(tmp_path / f"{name}.npz", 30)
    task = SuiteTask(Part("s.npz"), Part("t.npz"), labels=2)
    loaded, other = (load_task(task, tmp_path, tmp_path / "work", seed=seed) for seed in (0, 1))
    assert len(loaded.target_labels[1]) == 4
    assert len(loaded.target) == len(loaded.test.oracle_labels) == 26
    assert not set(loaded.target_labels[0][:, 0]) & set(loaded.target[:, 0])
    assert not np.array_equal(loaded.target_labels[0], other.target_labels[0])
