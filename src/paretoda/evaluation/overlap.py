"""Metrics of label maps, as Cityscapes computes them, and pixels of whole sets as rows for snapshots.

One matrix of counts is filled over all images; an intersection over union is never averaged over images.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import repeat
from typing import overload

import torch
from torch import Tensor

from paretoda.evaluation.predictions import evaluation_mode
from paretoda.maps import resize_labels
from paretoda.types import IGNORE, Model, Source, Target


def confusion(truth: Tensor, prediction: Tensor, classes: int) -> Tensor:
    """Number of times that a pixel of class i was predicted as j; counts of several images add up.

    Args:
        truth: Labels, any shape, in 0..K-1, or `IGNORE` for pixels that do not count.
        prediction: Predicted classes, of the same shape; values outside 0..K-1 are wrong predictions of no class.
        classes: Number of classes K.

    Returns:
        Shape (K, K + 1), int64: rows are labels, the last column counts predictions that are no class.

    Raises:
        ValueError: The shapes differ, or a label is out of range.

    Examples:
        >>> confusion(torch.tensor([0, 0, 1, IGNORE]), torch.tensor([0, 1, 1, 0]), classes=2)
        tensor([[1, 1, 0],
                [0, 1, 0]])
    """
    if truth.shape != prediction.shape:
        raise ValueError(f"labels {tuple(truth.shape)} and predictions {tuple(prediction.shape)} must have one shape")
    valid = truth != IGNORE
    labels, found = truth[valid].long(), prediction[valid].long()
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise ValueError(f"the labels must lie in 0..{classes - 1} or be {IGNORE}")
    found = found.where((found >= 0) & (found < classes), classes)
    counts = torch.bincount(labels * (classes + 1) + found, minlength=classes * (classes + 1))
    return counts.view(classes, classes + 1)


@dataclass(frozen=True)
class Scores:
    """Scores of a matrix of counts, as fractions 0..1.

    Args:
        iou: Intersection over union of every class; NaN for one that is neither there nor predicted.
        miou: Mean over the other classes, or over the requested ones among them; NaN where there are none.
        counted: Number of classes in the mean.
        accuracy: Share of labelled pixels whose class was predicted; NaN where there are none.

    Examples:
        >>> Scores.of(confusion(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), classes=2)).iou
        (0.5, 0.5)
    """

    iou: tuple[float, ...]
    miou: float
    counted: int
    accuracy: float

    @staticmethod
    def of(matrix: Tensor) -> Scores:
        """Return the scores of counts (K, K + 1); see `confusion`."""
        classes = len(matrix)
        hits, truths = matrix.diagonal().tolist(), matrix.sum(1).tolist()
        predicted = matrix[:, :classes].sum(0).tolist()
        unions = [truths[k] + predicted[k] - hits[k] for k in range(classes)]
        iou = tuple(hits[k] / unions[k] if unions[k] else math.nan for k in range(classes))
        accuracy = sum(hits) / sum(truths) if sum(truths) else math.nan
        return Scores(iou, math.nan, 0, accuracy).over(range(classes))

    def over(self, classes: Iterable[int]) -> Scores:
        """Return the same with the mean over these classes alone; pixels of other classes still count as mistakes."""
        present = [self.iou[k] for k in classes if not math.isnan(self.iou[k])]
        miou = sum(present) / len(present) if present else math.nan
        return replace(self, miou=miou, counted=len(present))


@overload
def pixel_snapshot_rows(
    model: Model,
    batches: Iterable[Tensor],
    labels: Iterable[Tensor],
    *,
    per_image: int = 64,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Source: ...
@overload
def pixel_snapshot_rows(
    model: Model,
    batches: Iterable[Tensor],
    labels: None = None,
    *,
    per_image: int = 64,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Target: ...
def pixel_snapshot_rows(
    model: Model,
    batches: Iterable[Tensor],
    labels: Iterable[Tensor] | None = None,
    *,
    per_image: int = 64,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Source | Target:
    """Pixels of every image of a set as rows for a `Snapshot`, in evaluation mode, at the resolution of the features.

    The pixels are the same for every model with maps of this size, whatever the size of the batches.

    Args:
        model: Model, already on `device`; its mode is restored.
        batches: Inputs of the set in its order, shape (b, ...) each.
        labels: Labels of the source, shape (b, H, W) each, along with the batches; pixels without a label are left out.
        per_image: Number of pixels of an image, or all where it has fewer.
        seed: Seed of the choice.
        device: Device that the batches are sent to; the results are on the CPU.

    Returns:
        Features (N, d), logits (N, K), labels of the source (N,), and the index 0..N-1; image by image.

    Raises:
        ValueError: There is no image, or none has a label.
    """
    generator = torch.Generator().manual_seed(seed)
    pairs = zip(batches, repeat(None)) if labels is None else zip(batches, labels, strict=True)
    rows: list[tuple[Tensor, ...]] = []
    with evaluation_mode(model):
        for inputs, truth in pairs:
            maps = model.encoder(inputs.to(device))
            image, place, own = _draw_pixels(truth, maps, per_image, generator)
            values = [found.flatten(2).cpu()[image, :, place] for found in (maps, model.head(maps))]
            rows.append((*values, own))
    if not sum(len(part[0]) for part in rows):
        raise ValueError("there is no pixel to use: no image was given, or none has a label")
    features, logits, found = (torch.cat(part) for part in zip(*rows, strict=True))
    index = torch.arange(len(features))
    return Target(features, logits, index) if labels is None else Source(features, logits, index, labels=found)


def _draw_pixels(
    truth: Tensor | None, maps: Tensor, per_image: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Image, position and label (0 where there are none), each (N,), of pixels drawn in every map (n, d, h, w)."""
    count, _, height, width = maps.shape
    labels = torch.zeros(count, height * width, dtype=torch.int64)
    if truth is not None:
        labels = resize_labels(truth.cpu(), (height, width)).long().flatten(1)
    places = []
    for own in labels != IGNORE:
        valid = own.nonzero().squeeze(1)
        places.append(valid[torch.randperm(len(valid), generator=generator)[:per_image]])
    image = torch.arange(count).repeat_interleave(torch.tensor([len(own) for own in places]))
    place = torch.cat(places)
    return image, place, labels[image, place]
