"""Make the files of the suite `sentiment`: sentences of four domains, positive or negative, as TF-IDF vectors.

    python benchmarks/sentiment.py [--out build/data/sentiment] [--archive vaderSentiment-2.5.tar.gz]
    paretoda bench sentiment --data build/data ...

The sentences and their ratings (-4 to 4, means of several readers) belong to Hutto and Gilbert, "VADER: A Parsimonious
Rule-based Model for Sentiment Analysis of Social Media Text", ICWSM 2014. Version 2.5 of the package vaderSentiment
(MIT licence) has them in its source archive, which pip downloads if none is given. Sentences rated between -1 and 1 are
left out. Writes amazon.npz, movies.npz, nyt.npz and tweets.npz.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

FILES = {
    "amazon": "amazonReviewSnippets",
    "movies": "movieReviewSnippets",
    "nyt": "nytEditorialSnippets",
    "tweets": "tweets",
}
CLASSES = ("negative", "positive")
RATED = 1.0
MOST = 4000


def download(folder: Path) -> Path:
    """Download the source archive into a folder and return its path."""
    wanted = ["--no-deps", "--no-binary", ":all:", "--quiet", "--dest", str(folder), "vaderSentiment==2.5"]
    subprocess.run([sys.executable, "-m", "pip", "download", *wanted], check=True)
    return next(folder.glob("*.tar.gz"))


def read_member(archive: tarfile.TarFile, ending: str) -> bytes:
    """Return the content of the first file of an archive whose name has this ending."""
    file = archive.extractfile(next(each for each in archive.getmembers() if each.name.endswith(ending)))
    assert file is not None
    return file.read()


def read_sentences(archive: Path) -> dict[str, tuple[list[str], np.ndarray]]:
    """Return domain -> sentences and labels (0 negative, 1 positive), at most `MOST`, drawn with a fixed seed."""
    with tarfile.open(archive) as outer:
        content = read_member(outer, "hutto_ICWSM_2014.tar.gz")
    found, rng = {}, np.random.default_rng(0)
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        for domain, name in FILES.items():
            lines = read_member(files, f"/{name}_GroundTruth.txt").decode("latin-1").splitlines()
            rows = [line.split("\t") for line in lines]
            ratings = np.array([float(row[1]) for row in rows])
            kept = rng.permutation(np.flatnonzero(np.abs(ratings) > RATED))[:MOST]
            found[domain] = [rows[place][2] for place in kept], (ratings[kept] > 0).astype(np.int64)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/data/sentiment"), help="folder of the files")
    parser.add_argument("--archive", type=Path, help="the source archive; downloaded if not given")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        domains = read_sentences(given.archive or download(Path(folder)))
    words = TfidfVectorizer(min_df=3, ngram_range=(1, 2), max_features=4000, sublinear_tf=True)
    words.fit([sentence for sentences, _ in domains.values() for sentence in sentences])
    given.out.mkdir(parents=True, exist_ok=True)
    for domain, (sentences, labels) in domains.items():
        x = words.transform(sentences).toarray().astype(np.float32)
        np.savez_compressed(given.out / f"{domain}.npz", x=x, y=labels, classes=np.array(CLASSES))
        print(f"{domain}: {len(x)} sentences, {100 * labels.mean():.0f} % positive")


if __name__ == "__main__":
    main()
