"""How good label maps are, as Cityscapes scores them, and pixels of whole sets as rows for snapshots.

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
    """How often a pixel of class i was predicted as j; counts of several images add up.

    Args:
        truth: Labels, any shape, in 0..K-1, or `IGNORE`, where nothing counts.
        prediction: Of the same shape; what lies outside 0..K-1 is no class, and wrong.
        classes: Number of classes K.

    Returns:
        Shape (K, K + 1), int64: rows are labels, the last column counts predictions that are no class.
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
    """What a matrix of counts says, as fractions 0..1.

    Args:
        iou: Of every class; NaN for one that is neither there nor predicted.
        miou: The mean over the others, or over those of them that were asked for; NaN where there are none.
        counted: How many these are.
        accuracy: The share of labelled pixels whose class was found; NaN where there are none.
    """

    iou: tuple[float, ...]
    miou: float
    counted: int
    accuracy: float

    @staticmethod
    def of(matrix: Tensor) -> Scores:
        """The scores of counts (K, K + 1), see `confusion`."""
        classes = len(matrix)
        hits, truths = matrix.diagonal().tolist(), matrix.sum(1).tolist()
        predicted = matrix[:, :classes].sum(0).tolist()
        unions = [truths[k] + predicted[k] - hits[k] for k in range(classes)]
        iou = tuple(hits[k] / unions[k] if unions[k] else math.nan for k in range(classes))
        accuracy = sum(hits) / sum(truths) if sum(truths) else math.nan
        return Scores(iou, math.nan, 0, accuracy).over(range(classes))

    def over(self, classes: Iterable[int]) -> Scores:
        """The same with the mean over these classes alone; pixels of the others still count as mistakes of these."""
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

    The same pixels for every model with maps of this size, whatever the size of the batches.

    Args:
        model: Already on `device`; its mode is restored.
        batches: The set's inputs in its order, shape (b, ...) each.
        labels: Labels of the source, shape (b, H, W) each, along with the batches; pixels without a label are left out.
        per_image: How many pixels of an image, or all where it has fewer.
        seed: Seed of the choice.
        device: Device that the batches are sent to; the results are on the CPU.

    Returns:
        Features (N, d), logits (N, K), the source's labels (N,), and 0..N-1 as index; image by image.
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
        raise ValueError("there is no pixel to look at: no image was given, or none has a label")
    features, logits, found = (torch.cat(part) for part in zip(*rows, strict=True))
    index = torch.arange(len(features))
    return Target(features, logits, index) if labels is None else Source(features, logits, index, labels=found)


def _draw_pixels(
    truth: Tensor | None, maps: Tensor, per_image: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Image, place and label (0 where there are none), each (N,), of pixels drawn in every map (n, d, h, w)."""
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
