"""Metrics of label maps, as Cityscapes computes them, and pixels of whole sets as rows for snapshots.

One matrix of counts is filled over all images; an intersection over union is never averaged over images.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from paretoda.types import IGNORE


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
