"""Classes that nothing names are numbered, and a number that stands alone is shown."""

import re

import pytest

from paretoda.data.segmentation.opening import open_scenes


def test_classes_without_a_gap_are_only_numbered(write) -> None:
    assert open_scenes(write.plain(classes=3), labelled=True).notes == (
        "Nothing names the classes, so they are numbered 0..2; write them into classes.txt.",
    )


@pytest.mark.parametrize(("value", "absent"), [(4, 1), (77, 74), (254, 251)])
def test_a_label_far_above_all_others_is_shown_with_its_file(write, value: int, absent: int) -> None:
    root = write.plain(classes=3)
    write.ids("plain/labels/sub/2.png", [0, value])
    scenes = open_scenes(root, labelled=True)
    assert len(scenes.classes) == value + 1
    (note,) = scenes.notes
    file = re.escape(str(root / "labels/sub/2.png"))
    assert re.search(rf"numbered 0\.\.{value}; .* {absent} of them have no pixel; .*the label {value} in {file}", note)


def test_maps_without_any_label_have_one_class(write) -> None:
    root = write.plain(classes=1)
    for k in range(4):
        write.ids(f"plain/labels/sub/{k}.png", [255])
    assert open_scenes(root, labelled=True).classes == ("class 0",)
