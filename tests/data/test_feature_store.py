"""Every image is encoded once, whatever happens to processes and files, and its features are always the same."""

import json
import os
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest
from data import encoding_process
from data.encoding_process import feature
from hypothesis import given
from hypothesis import strategies as st

from paretoda.data import feature_store
from paretoda.data.feature_store import FeatureStore, open_store
from paretoda.data.samples import content_hash
from paretoda.errors import SettingsError
from paretoda.io.cache import cache_folder, count_images, list_cache, trim_cache

KEY = "0" * 32
NAMES = [content_hash(str(number).encode()) for number in range(400)]


class Encoder:
    """Encodes images in batches of three, and counts them."""

    def __init__(self, digests, stop_after=None):
        self.digests, self.stop_after = digests, stop_after
        self.encoded = []

    def __call__(self, places):
        for start in range(0, len(places), 3):
            batch = [self.digests[place] for place in places[start : start + 3]]
            if self.stop_after is not None and len(self.encoded) >= self.stop_after:
                raise KeyboardInterrupt
            self.encoded += batch
            yield np.stack([feature(digest) for digest in batch])


def fetch(digests, store=None, **options):
    """Fetch, compare with the truth, and return what had to be encoded."""
    encoder = Encoder(digests)
    rows = (store or open_store(KEY, {"backbone": "drawn", "size": 8})).fetch(digests, encoder, **options)
    assert np.array_equal(rows, np.stack([feature(digest) for digest in digests]))
    assert rows.dtype == np.float32
    return encoder.encoded


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PARETODA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PARETODA_CACHE_GB", raising=False)


def files():
    return sorted((cache_folder() / "features" / KEY).glob("*"))


@given(st.lists(st.lists(st.sampled_from(NAMES[:40]), min_size=1, max_size=50), min_size=1, max_size=6))
def test_every_image_is_encoded_once_in_whatever_sets_it_comes(tmp_path_factory, sets):
    store = FeatureStore(tmp_path_factory.mktemp("store"))
    encoded = [name for names in sets for name in fetch(names, store)]
    assert Counter(encoded) == Counter({name for names in sets for name in names})


def test_portions_and_small_files_lose_nothing(monkeypatch):
    monkeypatch.setattr(feature_store, "_PORTION", 10)
    monkeypatch.setattr(feature_store, "_SMALL", 5)
    assert sorted(fetch(NAMES[:100])) == sorted(NAMES[:100])
    for name in NAMES[100:200]:
        assert fetch([name]) == [name]
    assert fetch(NAMES[:200]) == []
    kept = [path for path in files() if path.suffix == ".npz"]
    assert sum(map(count_images, kept)) == 200
    letters = Counter(path.name[0] for path in kept if count_images(path) < 5)
    assert max(letters.values(), default=0) == 1  # at most one small file of each letter


def test_what_was_encoded_before_an_interrupt_is_kept():
    names = NAMES[:30]
    encoder = Encoder(names, stop_after=12)
    with pytest.raises(KeyboardInterrupt):
        open_store(KEY, {}).fetch(names, encoder)
    assert sorted(fetch(names)) == sorted(set(names) - set(encoder.encoded))
    assert not [path for path in files() if path.suffix in (".lock", ".part")]


def test_the_progress_counts_what_is_known():
    fetch(NAMES[:10])
    told = []
    fetch(NAMES[:20], progress=lambda *far: told.append(far), what="features of the target")
    assert {(what, total) for what, _, total in told} == {("features of the target", 20)}
    assert [done for _, done, _ in told] == [13, 16, 19, 20]
    fetch(NAMES[:20], progress=lambda *_: pytest.fail("nothing was left to do"))


def damaged(data):
    """The file in many wrong forms: cut, empty, and with one byte changed, everywhere."""
    yield from (data[:0], data[: len(data) // 2], data[:-1], b"no archive")
    for place in range(0, len(data), 7):
        yield data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]


def test_a_damaged_file_is_encoded_again_and_never_believed():
    names = [name for name in NAMES if name[0] == "a"][:3]
    fetch(names)
    (path,) = [path for path in files() if path.suffix == ".npz"]
    data = path.read_bytes()
    again = 0
    for wrong in damaged(data):
        path.write_bytes(wrong)
        again += bool(fetch(names))  # compares with the truth
        assert fetch(names) == []
    assert again > 50  # most bytes matter


def test_a_complete_archive_of_something_else_is_no_features():
    names = [name for name in NAMES if name[0] == "a"][:3]
    packed = np.frombuffer(bytes.fromhex("".join(names)), np.uint8).reshape(-1, 16)
    fetch(names)
    (path,) = [path for path in files() if path.suffix == ".npz"]
    for wrong in (
        {"digests": packed},
        {"digests": packed, "features": np.ones((3, 16))},
        {"digests": packed, "features": np.ones((2, 16), np.float32)},
        {"digests": packed, "features": np.ones(3, np.float32)},
        {"features": np.ones((3, 16), np.float32)},
        {"digests": packed, "features": np.array([{}] * 3)},
    ):
        np.savez(path, **wrong)
        assert sorted(fetch(names)) == sorted(names)


@pytest.mark.parametrize("gigabytes", ["0", "0.0"])
def test_without_a_cache_everything_is_encoded_and_nothing_written(gigabytes, monkeypatch):
    monkeypatch.setenv("PARETODA_CACHE_GB", gigabytes)
    assert sorted(fetch(NAMES[:20])) == sorted(fetch(NAMES[:20])) == sorted(NAMES[:20])
    assert not cache_folder().exists()


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("PARETODA_CACHE", str(tmp_path / "file"))
    assert sorted(fetch(NAMES[:20])) == sorted(NAMES[:20])
    monkeypatch.setattr(feature_store, "atomic_file", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "disk full")))
    monkeypatch.setenv("PARETODA_CACHE", str(tmp_path / "full"))
    assert sorted(fetch(NAMES[:20])) == sorted(NAMES[:20])


def test_a_wrong_limit_is_refused(monkeypatch):
    for wrong in ("five", "-1", "nan", "inf"):
        monkeypatch.setenv("PARETODA_CACHE_GB", wrong)
        with pytest.raises(SettingsError, match=r"PARETODA_CACHE_GB is .*; it must be a number of gigabytes"):
            open_store(KEY, {})


def test_beyond_the_limit_the_least_recently_used_leave_first(monkeypatch):
    stores = [open_store(str(number) * 32, {"backbone": f"net{number}", "size": 8}) for number in range(3)]
    for age, store in zip((300, 200), stores, strict=False):
        fetch(NAMES[:100], store)
        for path in store.folder.glob("*.npz"):
            os.utime(path, (time.time() - age,) * 2)
    assert fetch(NAMES[:50], stores[0]) == []  # used again, at least the files of these letters
    size = sum(entry.size for entry in list_cache())
    monkeypatch.setenv("PARETODA_CACHE_GB", str(1.01 * size / 1e9))
    fetch(NAMES[:100], stores[2])
    left = {entry.name: entry.items for entry in list_cache()}
    assert left["net0, 8 px"] == left["net2, 8 px"] == 100
    assert "net1, 8 px" not in left
    assert not stores[1].folder.exists()
    assert sum(entry.size for entry in list_cache()) <= 1.01 * size


@pytest.fixture
def start(tmp_path):
    """Starts processes that fetch features; none of them outlives the test."""
    started = []

    def fetching(names, pause=0.0):
        command = [sys.executable, encoding_process.__file__, str(tmp_path / "log"), KEY, str(pause), json.dumps(names)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield fetching
    for process in started:
        process.kill()
        process.communicate()


def lines(process):
    return [json.loads(line) for line in process.communicate(timeout=120)[0].splitlines()]


def logged(tmp_path):
    """Process -> images that it encoded."""
    found = {}
    for line in (tmp_path / "log").read_text().splitlines():
        process, name = line.split()
        found.setdefault(int(process), []).append(name)
    return found


def test_processes_share_the_work_and_wait_for_each_other(start, tmp_path):
    sets = [NAMES[:300], NAMES[299::-1], NAMES[100:400]]
    processes = [start(names, pause=0.02) for names in sets]
    told = [lines(process) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert all(each[-1] == "whole" for each in told)
    encoded = logged(tmp_path)
    assert Counter(name for names in encoded.values() for name in names) == Counter(NAMES)
    assert len(encoded) >= 2  # no process waits where there is something to encode
    assert any(what == "waiting for features" for each in told for what, _, _ in each[:-1])
    for each in told:
        last = {what: far for what, *far in each[:-1]}
        assert set(map(tuple, last.values())) == {(300, 300)}  # nothing seems unfinished


def test_a_process_that_dies_blocks_nobody(start, tmp_path):
    names = NAMES[:128]
    first = start(names, pause=0.5)  # a minute is more than enough for the rest
    while len(logged(tmp_path).get(first.pid, []) if (tmp_path / "log").exists() else []) < 8:
        time.sleep(0.05)
    second = start(names)
    waits = json.loads(second.stdout.readline())
    assert waits == ["waiting for features", 0, 128]
    first.kill()
    assert lines(second)[-1] == "whole"
    assert second.returncode == 0
    assert Counter(logged(tmp_path)[second.pid]) == Counter(names)
    assert fetch(names) == []


def test_files_may_be_removed_while_others_read_them(start, monkeypatch):
    """With a limit that holds less than half of the features, processes remove each other's files all the time."""
    fetch(NAMES)
    size = sum(entry.size for entry in list_cache())
    monkeypatch.setenv("PARETODA_CACHE_GB", str(size / 2.5 / 1e9))
    trim_cache()
    processes = [start(NAMES[first:]) for first in (0, 50, 100, 150)]
    assert all(lines(process)[-1] == "whole" for process in processes)
    assert sum(entry.size for entry in list_cache()) <= size / 2.5


def test_clearing_while_features_are_made_is_harmless(start):
    process = start(NAMES[:100], pause=0.02)
    while process.poll() is None:
        subprocess.run([sys.executable, "-m", "paretoda", "cache", "--clear"], check=True, stdout=subprocess.DEVNULL)
    assert lines(process)[-1] == "whole"


def test_the_folder_says_what_it_holds():
    fetch(NAMES[:10])
    (entry,) = list_cache()
    assert (entry.kind, entry.name, entry.items) == ("features", "drawn, 8 px", 10)
    assert entry.size == sum(path.stat().st_size for path in files() if path.suffix == ".npz")
    assert abs(entry.used - time.time()) < 60
