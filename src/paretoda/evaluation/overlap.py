"""How good label maps are, as Cityscapes scores them.

One matrix of counts is filled over all images; an intersection over union is never averaged over images.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from paretoda.maps import enlarged
from paretoda.types import IGNORE


def label_map(logits: Tensor, size: tuple[int, int]) -> Tensor:
    """The class with the largest logit, enlarged first; among equals the first.

    Args:
        logits: shape (n, K, h, w).
        size: (H, W), of the labels.

    Returns:
        Shape (n, H, W), int64.
    """
    return enlarged(logits, size).argmax(1)


def confusion(truth: Tensor, prediction: Tensor, classes: int) -> Tensor:
    """How often a pixel of class i was predicted as j; counts of several images add up.

    Args:
        truth: labels, any shape, in 0..K-1, or `IGNORE`, where nothing counts.
        prediction: of the same shape; what lies outside 0..K-1 is no class, and wrong.
        classes: the number K.

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
        iou: of every class; not-a-number for one that is neither there nor predicted.
        miou: the mean over the others, or over those of them that were asked for; not-a-number where there are none.
        counted: how many these are.
        accuracy: the share of labelled pixels whose class was found; not-a-number where there are none.
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
