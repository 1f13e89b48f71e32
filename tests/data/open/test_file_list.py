"""A list of files in one buffer is the list of their paths."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.data.open.files import FileList

NAMES = st.lists(st.binary(min_size=1, max_size=9).filter(lambda name: b"\0" not in name).map(os.fsdecode), max_size=12)


@given(NAMES, st.randoms())
@settings(max_examples=50)
def test_it_is_the_list_of_the_paths(names, random) -> None:
    files = FileList.of(Path("/data"), names)
    assert len(files) == len(names)
    assert files.names() == names
    assert list(files) == [files[place] for place in range(len(names))] == [Path("/data") / name for name in names]
    places = [random.randrange(len(names)) for _ in range(5)] if names else []
    assert files.select(np.array(places, dtype=np.int64)).names() == [names[place] for place in places]


def test_a_position_beyond_its_end_is_an_error_and_one_before_its_start_counts_from_the_end() -> None:
    files = FileList.of(Path("/data"), ["a", "b"])
    assert files[-1] == Path("/data/b")
    for place in (2, -3):
        with pytest.raises(IndexError):
            files[place]


def test_absolute_names_stay_where_they_are() -> None:
    assert FileList.of(Path("/data"), ["/elsewhere/a.png"])[0] == Path("/elsewhere/a.png")


def test_a_name_costs_its_letters_and_five_bytes() -> None:
    names = [f"class/image_{number:07d}.jpg" for number in range(2000)]
    files = FileList.of(Path("/data"), names)
    assert len(files.joined) + files._ends.nbytes == sum(len(name) + 5 for name in names)
