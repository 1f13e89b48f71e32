"""Opens a path, arrays or a torch dataset as samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paretoda.data.open.arrays import ArraySamples, check_finite, make_array_samples, open_npz_samples
from paretoda.data.open.datasets import DatasetSamples, open_dataset
from paretoda.data.open.decoding import ARCHIVES, SUFFIXES
from paretoda.data.open.files import FileList, FileSamples, check_samples
from paretoda.data.open.folders import open_labelled_folder, open_unlabelled_folder
from paretoda.data.open.lists import open_list
from paretoda.data.open.sources import JoinedSamples
from paretoda.data.samples import Samples, match_labels
from paretoda.errors import DataError
from paretoda.types import Progress


def open_samples(  # noqa: PLR0913  (keyword options)
    what: Any,
    *,
    labelled: bool,
    classes: Sequence[str] | None = None,
    others: str | None = None,
    root: Path | None = None,
    skip_bad: bool = False,
    index_cache: bool = True,
    progress: Progress | None = None,
) -> Samples:
    """Open the samples behind a path, an array, a tuple (x, y[, classes]) or a torch dataset, and check them.

    Args:
        what: An image folder, a list file, an .npz file or a single image; an array, tensor or data frame; a dataset.
        labelled: Whether labels are read; with False they are not even looked at.
        classes: Classes of a trained model, which labels are matched to by name.
        others: What labels of all other classes become, a class behind `classes`; None: there must be none.
        root: Folder that the paths of a list file start from; its own folder by default.
        skip_bad: Whether unreadable images are left out, with a note, instead of raising an error.
        index_cache: Whether the list of a large folder's files is kept for the next run.
        progress: Called while image files are checked.

    Returns:
        The samples, with labels where they are wanted.

    Raises:
        DataError: The data cannot be used; the message says what to do.

    Examples:
        >>> import numpy as np
        >>> samples = open_samples((np.eye(3), [0, 1, 0], ["cat", "dog"]), labelled=True)
        >>> samples.kind, len(samples), samples.labels.classes
        ('features', 3, ('cat', 'dog'))
        >>> open_samples(np.eye(3), labelled=True)
        Traceback (most recent call last):
        ...
        paretoda.errors.DataError: the array has no labels; give a tuple (x, y) or (x, y, classes)
    """
    if isinstance(what, JoinedSamples):  # its parts are open and checked already
        return what if labelled else replace(what, labels=None)
    samples = open_unchecked(what, labelled=labelled, root=root, index_cache=index_cache)
    if isinstance(samples, FileSamples):
        samples = check_samples(samples, skip_bad=skip_bad, progress=progress)
    if isinstance(samples, ArraySamples) and samples.kind == "features":
        check_finite(samples.x, describe_origin(what))
    if samples.labels is not None and classes is not None:
        samples = replace(samples, labels=match_labels(samples.labels, classes, describe_origin(what), others))
    return samples


def open_unchecked(
    what: Any, *, labelled: bool, root: Path | None = None, index_cache: bool = False
) -> ArraySamples | DatasetSamples | FileSamples:
    """Open the samples before files are read and features are checked for NaN; otherwise as `open_samples`."""
    if isinstance(what, (ArraySamples, DatasetSamples, FileSamples)):
        return what if labelled else replace(what, labels=None)
    if isinstance(what, (str, Path)):
        return _open_path(Path(what).expanduser(), labelled, root, index_cache)
    if isinstance(what, tuple):
        if len(what) not in (2, 3):
            raise DataError(f"a tuple of {len(what)} is no data set; give (x, y) or (x, y, classes)")
        return make_array_samples(*what) if labelled else make_array_samples(what[0])
    if isinstance(what, (np.ndarray, torch.Tensor, list)) or hasattr(what, "to_numpy"):
        if labelled:
            raise DataError("the array has no labels; give a tuple (x, y) or (x, y, classes)")
        return make_array_samples(what)
    if isinstance(what, torch.utils.data.Dataset) or hasattr(what, "__getitem__"):
        return open_dataset(what, labelled=labelled)
    raise DataError(f"a {type(what).__name__} is no data set; give a path, arrays (x, y) or a torch Dataset")


def describe_origin(what: Any) -> str:
    """Return the name of the data in error messages."""
    return str(what) if isinstance(what, (str, Path)) else "the data"


def _open_path(path: Path, labelled: bool, root: Path | None, index_cache: bool) -> ArraySamples | FileSamples:
    if path.is_dir():
        return (
            open_labelled_folder(path, cached=index_cache)
            if labelled
            else open_unlabelled_folder(path, cached=index_cache)
        )
    if not path.exists():
        raise DataError(f"{path} does not exist; give an image folder, an .npz file or a list of `path label` lines")
    if not path.is_file():
        raise DataError(f"{path} is neither a file nor a folder; give an image folder, an .npz file or a list file")
    if path.suffix.lower() == ".npz":
        return open_npz_samples(path, labelled=labelled)
    if path.suffix.lower() in SUFFIXES:
        if labelled:
            raise DataError(f"{path} is a single image without a label; give a folder with one sub-folder per class")
        return FileSamples(FileList.of(path.parent, [path.name]))
    if path.suffix.lower() in ARCHIVES:
        raise DataError(f"{path} is an archive; unpack it and give the folder with its images")
    return open_list(path, labelled=labelled, root=root)
