"""A process that fetches features as a worker of a bench does, and logs every image that it encodes."""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from paretoda.data.feature_store import open_store


def feature(digest):
    return np.frombuffer(bytes.fromhex(digest), np.uint8).astype(np.float32)


def main(log, key, pause, names):
    """Write progress and results as lines of JSON; each image takes `pause` seconds."""
    digests = json.loads(names)

    def encode(places):
        for start in range(0, len(places), 4):
            batch = [digests[place] for place in places[start : start + 4]]
            time.sleep(float(pause) * len(batch))
            with Path(log).open("a") as file:
                file.write("".join(f"{os.getpid()} {digest}\n" for digest in batch))
            yield np.stack([feature(digest) for digest in batch])

    def progress(what, done, total):
        print(json.dumps([what, done, total]), flush=True)

    rows = open_store(key, {"backbone": "drawn", "size": 8}).fetch(digests, encode, progress)
    assert np.array_equal(rows, np.stack([feature(digest) for digest in digests]))
    print(json.dumps("whole"), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
