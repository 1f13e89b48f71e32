"""Pictures of segmentation: colours, overlays, palettes and bars."""

import base64
import io
import math

import numpy as np
import pytest
from PIL import Image

from paretoda.report.label_maps import Overlap, encode_png, make_map_card, overlay_map, paint_heat, paint_map, to_hex
from paretoda.report.thumbnails import make_picture

COLOURS = [(255, 0, 0), (0, 255, 0), (10, 20, 30)]
LABELS = np.array([[0, 1, 2], [255, 2, 0]], np.uint8)


def test_label_maps_have_their_colours_and_ignored_pixels_are_black():
    image = paint_map(LABELS, COLOURS)
    assert image[0].tolist() == [[255, 0, 0], [0, 255, 0], [10, 20, 30]]
    assert image[1, 0].tolist() == [0, 0, 0]


def test_a_png_holds_class_numbers_and_shows_colours():
    with Image.open(io.BytesIO(encode_png(LABELS, COLOURS))) as picture:
        assert picture.mode == "P"
        assert np.array_equal(np.asarray(picture), LABELS)
        assert np.array_equal(np.asarray(picture.convert("RGB")), paint_map(LABELS, COLOURS))


def test_an_overlay_mixes_and_leaves_ignored_pixels_alone():
    photo = np.full((2, 3, 3), 100, np.uint8)
    image = overlay_map(photo, LABELS, COLOURS, strength=0.5)
    assert image[0, 0].tolist() == [178, 50, 50]
    assert image[1, 0].tolist() == [100, 100, 100]


def test_uncertainty_glows():
    image = paint_heat(np.array([[0.0, 1 / 3, 2 / 3, 1.0]], np.float32))
    assert image[0].tolist() == [[0, 0, 0], [255, 0, 0], [255, 255, 0], [255, 255, 255]]


@pytest.mark.parametrize("photo", [True, False])
def test_pictures_in_a_page_are_small_and_maps_keep_their_colours(photo):
    wide = np.zeros((400, 800), np.uint8)
    wide[:, 400:] = 1
    kind, _, data = make_picture(paint_map(wide, COLOURS), photo=photo).partition(",")
    assert kind == f"data:image/{'jpeg' if photo else 'png'};base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        assert picture.size == (320, 160)
        if not photo:
            assert {colour for _, colour in picture.convert("RGB").getcolors()} == {(255, 0, 0), (0, 255, 0)}


def test_a_card_has_the_truth_only_where_it_was_given():
    photo, uncertain = np.zeros((2, 3, 3), np.uint8), (np.zeros((2, 3), np.float32), 0.9)
    assert make_map_card("a", photo, LABELS, uncertain, COLOURS).oracle_labels is None
    assert make_map_card("a", photo, LABELS, uncertain, COLOURS, LABELS).oracle_labels is not None


def test_a_class_that_is_nowhere_has_no_bar():
    overlap = Overlap("held-out source", ["road", "sky"], to_hex(COLOURS[:2]), [0.5, math.nan], 0.5)
    assert overlap.rows() == [("road", "#ff0000", 0.5), ("sky", "#00ff00", None)]
