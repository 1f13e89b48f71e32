"""The few target samples whose labels the user has given: which of them train, and which are held out."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paretoda.core.options import name_some
from paretoda.core.seeds import derive_seed
from paretoda.data.batching import Positions, endless_order, stratified_split
from paretoda.data.open.samples import open_samples
from paretoda.data.rows import Rows
from paretoda.data.samples import Labels, Samples
from paretoda.errors import DataError
from paretoda.types import Progress


@dataclass(frozen=True, eq=False)
class LabelledSamples:
    """Labelled samples of the target.

    Args:
        read: Returns inputs and labels of the samples at these positions; with a generator as they are trained on,
            without one in evaluation form.
        train: Positions of the samples that a loss is trained on.
        held_out: Positions of the samples that no loss is trained on: they guide, or choose the model, or both.
        guides: Whether those that are held out guide the weights.
    """

    read: Callable[[Positions, torch.Generator | None], tuple[Tensor, Tensor]]
    train: Positions
    held_out: Positions
    guides: bool = False

    def __len__(self) -> int:
        return len(self.train) + len(self.held_out)

    def read_training(self, seed: int, step: int, most: int) -> tuple[Tensor, Tensor] | None:
        """Return inputs and labels of the samples that this step trains on; None where none trains.

        Args:
            seed: Seed of the run.
            step: Number of the step.
            most: Largest number of samples.
        """
        if not len(self.train):
            return None
        chosen = self._choose(self.train, seed, "labelled", step, most)
        return self.read(chosen, torch.Generator().manual_seed(derive_seed(seed, "augment-labelled", step)))

    def read_guide(self, seed: int, step: int, most: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return inputs, labels and positions of the samples that guide this step; otherwise as `read_training`."""
        chosen = self._choose(self.held_out, seed, "labelled-guide", step, most)
        return *self.read(chosen, None), torch.from_numpy(chosen)

    @staticmethod
    def _choose(places: Positions, seed: int, stream: str, step: int, most: int) -> Positions:
        count = min(most, len(places))
        return places[endless_order(seed, stream, len(places), step * count, count)]


def label_rows(
    rows: Rows, labels: NDArray[np.int64], train: Positions, held_out: Positions, *, guides: bool = False
) -> LabelledSamples:
    """Return labelled samples with one label each.

    Args:
        rows: The samples, with the transform of the target.
        labels: Their labels, shape (n,).
        train: Positions of the samples that a loss is trained on.
        held_out: Positions of the others.
        guides: Whether those that are held out guide the weights.
    """

    def read(places: Positions, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        inputs = rows.evaluate(places) if generator is None else rows.train(places, generator)
        return inputs, torch.from_numpy(labels[places])

    return LabelledSamples(read, train, held_out, guides)


def open_target_labels(
    what: Any, target: Samples, classes: tuple[str, ...], *, skip_bad: bool = False, progress: Progress | None = None
) -> tuple[Samples, Labels]:
    """Open the labelled samples of the target and check that they fit the others.

    Args:
        what: Labelled data in any form that a source may have.
        target: The unlabelled samples of the target.
        classes: Classes of the source, which the labels are matched to by name.
        skip_bad: Whether unreadable images are left out.
        progress: Called while image files are checked.

    Raises:
        DataError: They have no labels, classes that the source does not have, or another form than the target.
    """
    samples = open_samples(what, labelled=True, classes=classes, skip_bad=skip_bad, progress=progress)
    if samples.labels is None:
        raise DataError("the labelled target samples have no labels; give them in the form of a source")
    if samples.kind != target.kind:
        raise DataError(
            f"the labelled target samples are {samples.kind}, the target is {target.kind}; give both in the same form"
        )
    if samples.kind == "features" and samples.shapes()[0] != target.shapes()[0]:
        ours, theirs = samples.shapes()[0][0], target.shapes()[0][0]
        raise DataError(
            f"the labelled target samples have {ours} features, the target has {theirs}; give both the same features"
        )
    return samples, samples.labels


def divide_labels(labels: NDArray[np.int64], seed: int, *, train: bool, hold_out: bool) -> tuple[Positions, Positions]:
    """Return the positions that train and those held out: all for one use, or half of each class for each of both.

    Args:
        labels: Labels, shape (n,).
        seed: Seed of the division.
        train: Whether a loss is trained on labelled samples.
        hold_out: Whether labelled samples guide or choose the model.

    Raises:
        DataError: There are too few samples to hold out.
    """
    every, none = np.arange(len(labels)), np.arange(0)
    if not hold_out:
        return (every if train else none), none
    trained, held_out = stratified_split(labels, 0.5, seed, "split-labelled") if train else (none, every)
    if len(held_out) < 2:
        more = ", or --no-label-loss to hold out all of them" if train else ""
        raise DataError(
            f"{len(labels)} labelled target samples leave {len(held_out)} for the guide or the choice of the model, "
            f"which needs 2; label two of a class or more{more}"
        )
    return trained, held_out


def describe_target_labels(
    found: LabelledSamples, present: Collection[int], classes: tuple[str, ...], what: str = "samples"
) -> list[str]:
    """Return sentences on how many samples are labelled, what they are for, and which classes have none.

    Args:
        found: The labelled samples.
        present: Classes that occur among them.
        classes: Names of all classes.
        what: What the samples are called.
    """
    uses = {"train": len(found.train), "guide" if found.guides else "are held out": len(found.held_out)}
    used = " and ".join(f"{count} {use}" for use, count in uses.items() if count) or "none is used"
    said = [f"{len(found)} target {what} are labelled: {used}."]
    if absent := [name for place, name in enumerate(classes) if place not in present]:
        said.append(f"These classes have no labelled target sample: {name_some(absent)}.")
    return said
