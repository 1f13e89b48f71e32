from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import TensorDataset

from paretoda.data.open.samples import open_samples
from paretoda.errors import DataError

X = np.random.default_rng(0).normal(size=(6, 3))
Y = np.array([0, 1, 0, 1, 2, 2])


@pytest.mark.parametrize(
    "what",
    [X, torch.tensor(X), pd.DataFrame(X), X.tolist(), (X, Y), (X, Y, ["a", "b", "c"]), TensorDataset(torch.tensor(X))],
    ids=["numpy", "torch", "pandas", "list", "pair", "triple", "dataset"],
)
def test_the_same_features_from_anywhere(what: object) -> None:
    samples = open_samples(what, labelled=False)
    assert samples.labels is None
    assert np.array_equal(samples.read(range(6)), X.astype(np.float32))


def test_a_path_is_a_folder_an_npz_a_list_or_an_image(paint, tmp_path: Path) -> None:
    image = paint("folder/a/1.png")
    np.savez(tmp_path / "x.npz", x=X)
    (tmp_path / "list.txt").write_text("folder/a/1.png 0\n")
    assert len(open_samples(str(tmp_path / "folder"), labelled=False)) == 1
    assert len(open_samples(tmp_path / "x.npz", labelled=False)) == 6
    assert open_samples(tmp_path / "list.txt", labelled=False).names([0]) == ["folder/a/1.png"]
    assert open_samples(image, labelled=False).names([0]) == ["1.png"]
    moved = tmp_path / "elsewhere" / "list"
    moved.parent.mkdir()
    moved.write_text("folder/a/1.png 0\n")
    assert len(open_samples(moved, labelled=True, root=tmp_path)) == 1


def test_what_is_no_data_set_is_refused(paint, tmp_path: Path) -> None:
    image = paint("1.png")
    (tmp_path / "weights.pth").write_bytes(b"PK\x03\x04\x00\xff")
    (tmp_path / "photos.ZIP").write_bytes(b"PK\x03\x04\x00\xff")
    refused = [
        (tmp_path / "photos.ZIP", "is an archive; unpack it and give the folder"),
        (tmp_path / "nowhere", "does not exist"),
        (tmp_path / "weights.pth", "is not a data set"),
        (image, "single image without a label"),
        (X, "no labels"),
        ((X,), "a tuple of 1"),
        (3, "a int is no data set"),
        (Path("/dev/null"), "neither a file nor a folder"),
    ]
    for what, message in refused:
        with pytest.raises(DataError, match=message):
            open_samples(what, labelled=True)


def test_features_are_checked(tmp_path: Path) -> None:
    x = X.copy()
    x[1, 2] = np.nan
    np.savez(tmp_path / "x.npz", x=x, y=Y)
    for what in (x, tmp_path / "x.npz", torch.utils.data.TensorDataset(torch.tensor(x))):
        with pytest.raises(DataError, match="row 1, column 2 is NaN"):
            open_samples(what, labelled=False)


def test_a_missing_file_in_a_list_is_named_or_left_out(paint, tmp_path: Path) -> None:
    paint("1.png")
    (tmp_path / "list.txt").write_text("1.png 0\n2.png 1\n")
    with pytest.raises(DataError, match=r"2\.png does not exist"):
        open_samples(tmp_path / "list.txt", labelled=True)
    samples = open_samples(tmp_path / "list.txt", labelled=True, skip_bad=True)
    assert len(samples) == 1
    assert "2.png" in samples.notes[0]


def test_an_evaluation_set_has_the_models_classes(paint, tmp_path: Path) -> None:
    for k, name in enumerate(("zebra", "ant")):
        paint(f"{name}/1.png", seed=k)
    classes = ("zebra", "bee", "ant")
    labels = open_samples(tmp_path, labelled=True, classes=classes).labels
    assert labels is not None
    assert labels.classes == classes
    assert labels.values.tolist() == [2, 0]
    with pytest.raises(DataError, match="does not know: zebra"):
        open_samples(tmp_path, labelled=True, classes=("ant", "bee"))


def test_opened_samples_can_be_opened_again_without_their_labels() -> None:
    samples = open_samples((X, Y), labelled=True)
    assert open_samples(samples, labelled=True).labels is samples.labels
    assert open_samples(samples, labelled=False).labels is None
