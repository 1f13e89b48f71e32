import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from paretoda.data.open.arrays import check_finite, make_array_samples, open_npz_samples
from paretoda.errors import DataError


def digests(samples):
    return samples.digests(range(len(samples)))


X = np.arange(12, dtype=np.float64).reshape(4, 3)
Y = np.array([0, 1, 1, 0])


@pytest.mark.parametrize(
    "x",
    [
        X,
        X.astype(np.float16),
        X.astype(np.uint16),
        X.tolist(),
        torch.tensor(X),
        torch.tensor(X).bfloat16(),
        torch.tensor(X, requires_grad=True),
        pd.DataFrame(X, columns=["a", "b", "c"]),
        X[:, ::-1][:, ::-1],
    ],
    ids=lambda x: type(x).__name__,
)
def test_features_of_any_library_become_float32(x: object) -> None:
    samples = make_array_samples(x)
    assert samples.kind == "features"
    assert samples.read([1, 3]).dtype == np.float32
    assert samples.read([1, 3]).tolist() == X[[1, 3]].tolist()
    assert samples.names([1, 3]) == ["1", "3"]
    assert samples.shapes() == [(3,)]


def test_images_of_any_layout_become_rows_of_pixels() -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 8, 6, 3), dtype=np.uint8)
    for given in (images, torch.tensor(images).permute(0, 3, 1, 2), images / 255, images.astype(np.int64)):
        assert (make_array_samples(given).x == images).all()
        assert make_array_samples(given).shapes() == [(8, 6, 3)]
    grey = images[..., :1]
    assert make_array_samples(grey).x.shape == make_array_samples(grey[..., 0]).x.shape == (5, 8, 6)
    assert make_array_samples(grey).shapes() == [(8, 6, 1)]
    clear = np.concatenate([images, np.zeros_like(grey)], axis=3)
    assert (make_array_samples(clear).x == 255).all()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros(3), "has the shape"),
        (np.zeros((0, 3)), "no samples"),
        (np.zeros((3, 0)), "size zero"),
        (np.zeros((3, 5, 5, 2), dtype=np.uint8), "channels"),
        (np.full((3, 5, 5), -1.0), "beyond 0..1"),
        (np.full((3, 5, 5), np.nan), "beyond 0..1"),
        (np.full((3, 5, 5), 256), "beyond 0..255"),
        (np.zeros((3, 2), dtype=complex), "instead of numbers"),
        (np.array([["a", "b"]]), "instead of numbers"),
        (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), "objects instead of numbers"),
        ([[1, 2], [3]], "same shape"),
    ],
)
def test_arrays_that_are_no_samples_are_refused(x: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        make_array_samples(x)


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (np.inf, "infinite"), (1e300, "too large for float32")])
def test_a_value_that_is_not_finite_is_located(value: float, what: str) -> None:
    x = X.copy()
    x[2, 1] = value
    with pytest.raises(DataError, match=f"row 2, column 1 is .*{what}.*1 of 4"):
        check_finite(make_array_samples(x).x, "data")


def test_as_many_labels_as_samples() -> None:
    with pytest.raises(DataError, match="4 samples but 3 labels"):
        make_array_samples(X, Y[:3])


def test_an_npz_gives_samples_labels_and_class_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=X, y=Y, classes=np.array(["cat", "dog"]))
    samples = open_npz_samples(tmp_path / "a.npz", labelled=True)
    assert samples.labels is not None
    assert samples.labels.classes == ("cat", "dog")
    np.savez(tmp_path / "b.npz", x=X, y=Y * 5 - 3)
    labels = open_npz_samples(tmp_path / "b.npz", labelled=True).labels
    assert labels is not None
    assert (labels.classes, labels.values.tolist()) == (("-3", "2"), [0, 1, 1, 0])


class Bomb:
    """Raises when unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("a pickle was loaded",))


def test_labels_are_not_touched_unless_wanted(tmp_path: Path) -> None:
    bomb = np.array([Bomb()], dtype=object)
    np.savez(tmp_path / "a.npz", x=X, y=bomb, classes=bomb)
    assert open_npz_samples(tmp_path / "a.npz", labelled=False).labels is None
    with pytest.raises(DataError, match="pickled objects"):
        open_npz_samples(tmp_path / "a.npz", labelled=True)


def test_files_that_are_no_samples_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "objects.npz", x=np.array([Bomb()], dtype=object), y=Y)
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(Bomb()))
    np.savez(tmp_path / "nox.npz", features=X)
    np.savez(tmp_path / "noy.npz", x=X)
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "empty.npz").touch()
    np.savez(tmp_path / "whole.npz", x=np.random.default_rng(0).random((100, 10)), y=np.arange(100))
    content = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(content[: len(content) // 2])
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 255
    (tmp_path / "flipped.npz").write_bytes(flipped)
    np.save(tmp_path / "single.npy", X)
    (tmp_path / "single.npy").rename(tmp_path / "single.npz")
    messages = {
        "objects": "pickled objects",
        "pickle": "no .npz file",
        "nox": "no array `x` .it has features.",
        "noy": "no labels",
        "text": "no .npz file",
        "empty": "no .npz file",
        "half": "no .npz file",
        "flipped": "damaged",
        "single": "no .npz file",
    }
    for name, message in messages.items():
        with pytest.raises(DataError, match=message):
            open_npz_samples(tmp_path / f"{name}.npz", labelled=True)


def test_the_digests_know_content_and_order_but_not_labels() -> None:
    assert digests(make_array_samples(X, Y)) == digests(make_array_samples(X.astype(np.float32)))
    assert digests(make_array_samples(X)) != digests(make_array_samples(X[::-1]))
    assert digests(make_array_samples(X)) != digests(make_array_samples(X.reshape(6, 2)))
