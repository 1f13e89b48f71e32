"""Real data sets, where they are at hand."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from paretoda.data.build_pair import make_pair
from paretoda.data.doctor.examine import examine
from paretoda.data.open.samples import open_samples
from paretoda.data.rows import iterate_inputs
from paretoda.data.settings import PairSettings


def test_surf_features_give_the_known_source_only_accuracy(shared_data: Path) -> None:
    folder = shared_data / "office-caltech10"
    source = open_samples(folder / "amazon-surf.npz", labelled=True)
    assert source.labels is not None
    target = open_samples(folder / "caltech10-surf.npz", labelled=True, classes=source.labels.classes)
    assert target.labels is not None
    scaled = [
        torch.log1p(torch.from_numpy(np.asarray(samples.read(range(len(samples)))))) for samples in (source, target)
    ]
    model = LogisticRegression(max_iter=200).fit(scaled[0], source.labels.values)
    accuracy = model.score(scaled[1], target.labels.values)
    assert 0.35 < accuracy < 0.55  # README: 45 %


def test_half_precision_features_make_a_pair(shared_data: Path) -> None:
    pair = make_pair(shared_data / "pacs/art_painting-effnetlite0.npz", shared_data / "pacs/cartoon-effnetlite0.npz")
    assert pair.input_shape == (1280,)
    assert len(pair.classes) == 7
    assert len(pair.target_held_out) == 234
    assert pair.batch(10).source.isfinite().all()


def test_mnist_and_usps_meet_at_28_pixels(shared_data: Path) -> None:
    pair = make_pair(shared_data / "digits/mnist-test.npz", shared_data / "digits/usps-test.npz")
    assert pair.input_shape == (1, 28, 28)
    assert pair.notes == ("The target's images (16x16) are resized to 28x28.",)
    assert pair.batch(1000).target.shape == (32, 1, 28, 28)


def test_label_maps_are_no_class_labels(shared_data: Path) -> None:
    with pytest.raises(ValueError, match="one integer per sample"):
        open_samples(shared_data / "camvid/val-day-120x160.npz", labelled=True)


def test_a_folder_of_photographs(shared_data: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(shared_data / "office-caltech10/images-160px.zip") as archive:
        archive.extractall(tmp_path, [name for name in archive.namelist() if name.startswith(("dslr/", "webcam/"))])
    pair = make_pair(tmp_path / "dslr", tmp_path / "webcam", PairSettings(batch_size=8))
    assert len(pair.classes) == 10
    assert (len(pair.source.samples), len(pair.target.samples)) == (157, 295)
    assert pair.input_shape == (3, 160, 160)
    assert pair.batch(0).target.shape == (8, 3, 160, 160)
    known = next(iter(pair.inputs("all-target", 8)))
    again = next(iterate_inputs(open_samples(tmp_path / "webcam", labelled=False), pair.prediction_transform(), 8))
    assert torch.equal(known, again)
    assert not [finding for finding in examine(tmp_path / "dslr", tmp_path / "webcam") if finding.severity == "error"]
