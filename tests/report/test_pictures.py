"""Maps and images are made of the right samples."""

import base64
import io
import re

import numpy as np
from PIL import Image

from paretoda.data import open_samples
from paretoda.report.pictures import make_cards, take_oracle_pictures
from paretoda.report.scatter import draw_panels, make_feature_map
from paretoda.report.thumbnails import make_thumbnail


def clouds(classes: int) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    y = np.arange(40) % classes
    x = rng.normal(size=(40, 30)).astype(np.float32) + 9 * y[:, None]
    return (x, y), (x[:25] + 1, y[:25])


def test_the_map_has_a_dot_or_cross_for_every_sample_in_both_panels() -> None:
    for classes in (1, 3, 12, 13, 40):
        plane = make_feature_map(*clouds(classes), [f"c{place}" for place in range(classes)])
        assert plane is not None
        for _, picture in draw_panels(plane):
            assert len(re.findall(r"M[-\d. ]+h0", picture)) == 40
            assert len(re.findall(r"M[-\d. ]+l5 5", picture)) == 25
        assert ("all others" in draw_panels(plane)[1][1]) == (classes > 12)


def test_the_map_separates_what_is_apart_and_refuses_what_is_no_number() -> None:
    source, target = clouds(2)
    plane = make_feature_map(source, target, "ab")
    assert plane is not None
    first = plane.points[:, 0]
    gap = first[plane.labels == 1].min() - first[plane.labels == 0].max()
    assert gap > 0 or first[plane.labels == 0].min() > first[plane.labels == 1].max()
    assert 0.5 < plane.explained <= 1
    assert make_feature_map((source[0] * np.nan, source[1]), target, "ab") is None
    assert make_feature_map((source[0] * 0, source[1]), (target[0] * 0, target[1]), "ab") is None


def decoded(uri: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))


def test_thumbnails_are_small_and_keep_the_picture() -> None:
    small = np.arange(256, dtype=np.uint8).reshape(16, 16)
    assert (np.asarray(decoded(make_thumbnail(small))) == small).all()
    photo = decoded(make_thumbnail(np.full((300, 200, 3), (200, 10, 10), np.uint8)))
    assert photo.size == (43, 64)
    assert np.abs(np.asarray(photo).astype(int) - (200, 10, 10)).max() < 12


def test_cards_are_the_least_and_the_most_certain_and_with_labels_the_surest_mistakes() -> None:
    images = np.zeros((100, 8, 8), np.uint8)
    samples = open_samples(images, labelled=False)
    predictions = [("a", place / 100) for place in range(100)]
    shown = [int(card.name) for card in make_cards(samples, predictions)]
    assert shown == [*range(16), *range(92, 100)]
    labels = ["b" if place == 50 else "a" for place in range(100)]
    told = make_cards(samples, predictions, labels)
    assert [int(card.name) for card in told] == [*range(8), 50, *range(92, 100)]
    assert {card.oracle_label for card in told} == {"a", "b"}
    several = [("abcd"[place // 25], place / 100) for place in range(100)]
    assert [int(card.name) for card in make_cards(samples, several)][16:] == [23, 24, 48, 49, 73, 74, 98, 99]
    assert make_cards(open_samples(np.zeros((5, 3), np.float32), labelled=False), predictions[:5]) == []


def test_oracle_pictures_say_oracle() -> None:
    samples = open_samples((np.zeros((4, 3)), np.array([0, 1, 1, 0]), ["a", "b"]), labelled=True)
    scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.9, 0.1]], np.float32)
    best, most = scores.argmax(axis=1), scores.max(axis=1)
    found = take_oracle_pictures(("a", "b"), samples, best, most).confusions[0]
    assert found.oracle
    assert "oracle" in found.heading
    assert found.counts == [[2, 0], [1, 1]]
