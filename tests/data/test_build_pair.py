from pathlib import Path

import numpy as np
import pytest
import torch

from paretoda.data.build_pair import make_pair
from paretoda.data.settings import PairSettings
from paretoda.errors import DataError

RNG = np.random.default_rng(0)
X, Y, Z = RNG.normal(size=(60, 5)), np.arange(60) % 3, RNG.normal(size=(40, 5))


def images(count: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, 256, (count, *shape), dtype=np.uint8)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (X, Z, "no labels"),
        ((X, np.zeros(60, dtype=int)), Z, "single class, '0'"),
        ((X, Y), Z[:19], "the target has 19 samples; collect at least 20"),
        ((X, Y), Z[:, :4], "the source has 5 features, the target has 4"),
        ((X, Y), images(30, 8, 8), "the source is features, the target is images"),
        ((X, Y), np.where(np.arange(40)[:, None] == 7, np.inf, Z), "row 7, column 0 is infinite"),
    ],
)
def test_domains_that_do_not_go_together_are_refused(source: object, target: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        make_pair(source, target)


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": 0},
        {"held_out": 0.7},
        {"held_out": -0.1},
        {"scaling": "robust"},
        {"augment": "wild"},
        {"channels": 2},
        {"image_size": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(DataError):
        PairSettings(**wrong)


def test_a_batch_larger_than_the_data_is_lowered_and_said() -> None:
    pair = make_pair((X, Y), Z, PairSettings(batch_size=100))
    assert pair.settings.batch_size == 36
    assert pair.notes == (
        "The batch size is lowered from 100 to 36, the number of training samples in the smaller domain.",
    )
    assert make_pair((X, Y), Z, PairSettings(batch_size=36)).notes == ()


def test_fewer_target_samples_can_be_allowed() -> None:
    assert len(make_pair((X, Y), Z[:1], PairSettings(least_target=1)).target_train) == 1


def test_classes_without_a_sample_are_said_and_kept() -> None:
    pair = make_pair((X, Y, ["a", "b", "c", "d"]), Z)
    assert pair.classes == ("a", "b", "c", "d")
    assert "no source sample: d." in pair.notes[0]


def test_small_images_keep_their_size_and_are_not_augmented() -> None:
    pair = make_pair((images(40, 28, 28), np.arange(40) % 2), images(40, 16, 16))
    transform = pair.target.transform
    assert (transform.size, transform.channels, transform.augment) == (28, 1, "none")
    assert pair.input_shape == (1, 28, 28)
    assert pair.notes == ("The target's images (16x16) are resized to 28x28.",)


def test_grey_and_colour_meet_in_colour() -> None:
    pair = make_pair((images(40, 16, 16), np.arange(40) % 2), images(40, 16, 16, 3))
    assert pair.input_shape == (3, 16, 16)
    assert pair.notes == ("The source's images are converted to RGB.",)


def test_photographs_are_augmented_and_at_most_224_pixels(paint, tmp_path: Path) -> None:
    for k in range(22):
        paint(f"s/{k % 2}/{k}.jpg", seed=k, size=(320, 240))
        paint(f"t/{k}.jpg", seed=k, size=(96, 128))
    transform = make_pair(tmp_path / "s", tmp_path / "t").target.transform
    assert (transform.size, transform.channels, transform.augment) == (224, 3, "standard")


def test_the_settings_overrule_the_guesses(two_folders: tuple[Path, Path]) -> None:
    settings = PairSettings(image_size=20, channels=1, augment="light", normalise=((0.1,), (0.2,)), batch_size=5)
    pair = make_pair(*two_folders, settings)
    transform = pair.target.transform
    assert (transform.size, transform.channels, transform.augment) == (20, 1, "light")
    assert (transform.mean, transform.std) == ((0.1,), (0.2,))
    assert pair.batch(3).target.shape == (5, 1, 20, 20)


def test_folders_become_a_pair(two_folders: tuple[Path, Path]) -> None:
    pair = make_pair(*two_folders, PairSettings(batch_size=10))
    assert pair.classes == ("cat", "dog")
    assert pair.input_shape == (3, 24, 24)
    assert pair.names("all-source", [0]) == ["cat/01.png"]
    assert torch.bincount(pair.labels_of("source")).tolist() == [11, 11]
    assert pair.batch(0).source.shape == (10, 3, 24, 24)
    assert [image.shape for image in pair.images("target", [0, 1])] == [(24, 32, 3)] * 2


def test_a_bad_image_stops_or_is_left_out(two_folders: tuple[Path, Path]) -> None:
    (two_folders[1] / "x" / "01.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"01\.png is empty"):
        make_pair(*two_folders)
    pair = make_pair(*two_folders, PairSettings(skip_bad=True))
    assert len(pair.target.samples) == 23
    assert any("x/01.png" in note for note in pair.notes)
