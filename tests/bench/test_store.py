"""The store loses no whole line, and half a line never harms."""

import json

import pytest

from paretoda.bench.store import Store
from paretoda.job.directory import RunError


def row(key, **more):
    return {"key": key, "name": "ö", **more}


def test_what_was_added_is_read_back_in_order(tmp_path):
    store = Store(tmp_path / "new" / "folder")
    assert store.read() == []
    for key in "ba":
        store.add(row(key, score=float("inf")))
    assert store.read() == [row("b", score=float("inf")), row("a", score=float("inf"))]


@pytest.mark.parametrize("cut", range(1, 20))
def test_half_a_line_is_left_out_and_the_next_line_is_whole(tmp_path, cut):
    store = Store(tmp_path)
    store.add(row("a"))
    store.add(row("b"))
    text = store.path.read_bytes()
    store.path.write_bytes(text[:-cut])
    assert store.read() == [row("a")]
    assert store.path.read_bytes() == text[:-cut], "a reader changes nothing: another bench may be writing"
    store.add(row("c"))
    assert store.read() == [row("a"), row("c")]


def test_a_store_that_is_nothing_but_half_a_line_begins_anew(tmp_path):
    store = Store(tmp_path)
    store.path.write_bytes(b'{"key": "a')
    assert store.read() == []
    store.add(row("b"))
    assert store.read() == [row("b")]


@pytest.mark.parametrize("line", ["not JSON", "[1]", "{}", ""])
def test_a_damaged_line_in_the_middle_is_named(tmp_path, line):
    store = Store(tmp_path)
    store.path.write_text(f"{json.dumps(row('a'))}\n{line}\n{json.dumps(row('b'))}\n")
    with pytest.raises(RunError, match=r"line 2 of .*remove the line"):
        store.read()


def test_two_benches_in_one_directory_are_refused_until_the_first_has_ended(tmp_path):
    store = Store(tmp_path)
    with store.held(), pytest.raises(RunError, match="is at work in .*a bench"), Store(tmp_path).held():
        pass
    with store.held():
        pass
