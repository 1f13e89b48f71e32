from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from paretoda.data.open.datasets import DatasetSamples, open_dataset
from paretoda.errors import DataError


class Pictures(Dataset[Any]):
    """Images as the given function makes them, with labels 4 and 9."""

    def __init__(self, make: Any, labelled: bool = True) -> None:
        self.make, self.labelled = make, labelled

    def __len__(self) -> int:
        return 6

    def __getitem__(self, place: int) -> Any:
        if place >= 6:
            raise IndexError
        image = self.make(np.full((5, 7, 3), 40 * place, dtype=np.uint8))
        return (image, 4 + 5 * (place % 2)) if self.labelled else image


@pytest.mark.parametrize(
    "make",
    [Image.fromarray, np.asarray, torch.tensor, lambda x: torch.tensor(x).permute(2, 0, 1) / 255],
    ids=["pil", "numpy", "torch", "scaled"],
)
def test_images_are_read_item_by_item(make: Any) -> None:
    samples = open_dataset(Pictures(make), labelled=True)
    assert isinstance(samples, DatasetSamples)
    assert samples.labels is not None
    assert samples.labels.classes == ("4", "9")
    assert samples.labels.values.tolist() == [0, 1] * 3
    assert (samples.read([2])[0] == 80).all()
    assert samples.read([2])[0].shape == (5, 7, 3)
    assert samples.shapes()[0] == (5, 7, 3)
    assert len(set(samples.digests(range(6)))) == 6


def test_features_are_copied_once() -> None:
    x = torch.randn(8, 3)
    samples = open_dataset(TensorDataset(x, torch.arange(8) % 2), labelled=True)
    assert samples.kind == "features"
    assert (samples.read(range(8)) == x.numpy()).all()
    assert samples.labels is not None
    assert len(open_dataset(Subset(TensorDataset(x), [1, 2]), labelled=False)) == 2


def test_labels_are_dropped_unless_wanted_and_missed_where_wanted() -> None:
    assert open_dataset(Pictures(np.asarray), labelled=False).labels is None
    for dataset in (Pictures(np.asarray, labelled=False), TensorDataset(torch.randn(4, 2))):
        assert len(open_dataset(dataset, labelled=False)) in (4, 6)
        with pytest.raises(DataError, match="no labels"):
            open_dataset(dataset, labelled=True)


def test_normalised_images_are_refused() -> None:
    with pytest.raises(DataError, match="not normalised"):
        open_dataset(Pictures(lambda x: torch.tensor(x).float() / 60 - 1), labelled=True)


def test_streams_and_empty_datasets_are_refused() -> None:
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Any:
            return iter([1])

    with pytest.raises(DataError, match="map-style"):
        open_dataset(Stream(), labelled=False)
    with pytest.raises(DataError, match="no samples"):
        open_dataset(TensorDataset(torch.zeros(0, 2)), labelled=False)
