"""The store loses no whole line, and half a line never harms."""

import errno
import json
import resource
from contextlib import contextmanager

import pytest

from paretoda.bench.store import Store
from paretoda.cli.errors import explain
from paretoda.errors import RunError


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
    with store.lock(), pytest.raises(RunError, match="a bench"), Store(tmp_path).lock():
        pass
    with store.lock():
        pass


@contextmanager
def no_file_larger_than(size):
    """The system writes what fits and then refuses, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_line_that_does_not_fit_leaves_no_trace_and_the_sentence_names_the_file(tmp_path):
    store = Store(tmp_path)
    store.add(row("a"))
    whole = store.path.read_bytes()
    for more in range(len(json.dumps(row("b"), ensure_ascii=False).encode())):
        with pytest.raises(OSError, match="File too large") as caught, no_file_larger_than(len(whole) + more):
            store.add(row("b"))
        assert store.path.read_bytes() == whole, more
    told, code = explain(caught.value)
    assert (code, str(store.path) in told, "larger than is allowed" in told) == (2, True, True)
    store.add(row("b"))
    assert store.read() == [row("a"), row("b")]


def test_a_full_disk_is_one_sentence(tmp_path):
    store = Store(tmp_path)
    store.path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        store.add(row("a"))
    assert caught.value.errno == errno.ENOSPC
    told, code = explain(caught.value)
    assert code == 2
    assert told.startswith(f"the disk is full at {store.path}; free some space")


def test_the_second_is_told_who_holds_the_directory_and_no_lock_is_left(tmp_path):
    import os
    import platform

    with (
        Store(tmp_path).lock(),
        pytest.raises(RunError, match=f"process {os.getpid()} on {platform.node()} is at work"),
        Store(tmp_path).lock(),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
