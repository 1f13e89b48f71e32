"""Every table maps its ids as the data sets' authors say, and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretoda.data.segmentation.label_tables import (
    CAMVID,
    CAMVID_AS_CITYSCAPES,
    CITYSCAPES,
    CITYSCAPES_AS_CAMVID,
    SYNTHIA,
    TABLES,
    LabelTable,
    choose_colours,
    find_table,
    make_palette,
    make_plain_table,
)
from paretoda.errors import DataError

CITYSCAPES_IDS = [7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33]
SYNTHIA_IDS = {3: 0, 4: 1, 2: 2, 21: 3, 5: 4, 7: 5, 15: 6, 9: 7, 6: 8, 1: 10, 10: 11, 17: 12, 8: 13}
SYNTHIA_IDS |= {19: 15, 12: 17, 11: 18}
CAMVID_IDS = {0: 10, 1: 2, 2: 5, 3: 0, 4: 1, 5: 8, 6: 7, 7: 4, 8: 13, 9: 11, 10: 12}


def mapping(table: LabelTable) -> dict[int, int]:
    return {value: int(cls) for value, cls in enumerate(table.lookup) if cls != 255}


def test_ids() -> None:
    assert mapping(CITYSCAPES) == {value: cls for cls, value in enumerate(CITYSCAPES_IDS)}
    assert mapping(SYNTHIA) == SYNTHIA_IDS
    assert mapping(CAMVID) == {cls: cls for cls in range(11)}
    assert mapping(CAMVID_AS_CITYSCAPES) == CAMVID_IDS


def test_names_stand_where_they_belong() -> None:
    assert [CITYSCAPES.names[k] for k in (0, 8, 10, 13, 18)] == ["road", "vegetation", "sky", "car", "bicycle"]
    assert CITYSCAPES.colours[13] == (0, 0, 142)
    occurring = {cls for _, cls in SYNTHIA.ids}
    assert len(occurring) == 16
    assert {SYNTHIA.names[cls] for cls in set(range(19)) - occurring} == {"terrain", "truck", "train"}
    assert CAMVID.names[4:7] == ("pavement", "tree", "sign_symbol")


def test_the_two_ways_between_camvid_and_cityscapes_agree() -> None:
    there = dict(CAMVID_AS_CITYSCAPES.ids)
    for value, ours in CITYSCAPES_AS_CAMVID.ids:
        assert there[ours] == CITYSCAPES.lookup[value] or value == 33  # a bicycle alone goes to the bicyclist, too
    assert (CITYSCAPES_AS_CAMVID.known == CITYSCAPES.known).all()


@pytest.mark.parametrize("name", TABLES)
@given(values=st.lists(st.integers(0, 255), min_size=1, max_size=20))
def test_an_unknown_id_is_named_and_every_other_becomes_its_class(name: str, values: list[int]) -> None:
    table = TABLES[name]
    ids = np.array(values, np.uint8)
    allowed = {value for value, _ in table.ids} | set(table.void) | {255}
    strange = sorted(set(values) - allowed)
    if strange:
        with pytest.raises(DataError, match=rf"here has the label {strange[0]},"):
            table.classes_of(ids, "here")
    else:
        expected = [dict(table.ids).get(value, 255) for value in values]
        assert table.classes_of(ids, "here").tolist() == expected


@given(st.integers(1, 254))
def test_generated_colours_differ_and_are_not_black(count: int) -> None:
    colours = make_palette(count)
    assert len(set(colours)) == count
    assert (0, 0, 0) not in colours
    assert colours == make_palette(count + 1)[:count]


def test_known_names_have_their_colours() -> None:
    assert choose_colours(["sky", "sign_symbol"]) == (CAMVID.colours[0], CAMVID.colours[6])
    assert make_plain_table(CITYSCAPES.names).colours == CITYSCAPES.colours
    assert choose_colours(["sky", "dragon"]) == make_palette(2)


def test_a_wrong_table() -> None:
    with pytest.raises(DataError, match="no label table 'kitti'; choose from cityscapes"):
        find_table("kitti")
    with pytest.raises(DataError, match="as many colours"):
        LabelTable(("a", "b"), ((1, 2, 3),), ())
    with pytest.raises(DataError, match=r"classes in 0\.\.0"):
        LabelTable(("a",), ((1, 2, 3),), ((0, 1),))
