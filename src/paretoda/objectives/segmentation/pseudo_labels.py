"""Pseudo-labels: which pixels of the target are certain enough to be taught, class by class.

All in log space: log p of the predictions, log t of the thresholds.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paretoda.domains import IGNORE


def class_thresholds(log_p: Tensor, portion: float) -> Tensor:
    """For every class the confidence that this portion of the pixels predicted as it reaches (CBST).

    Args:
        log_p: of pixels of the whole target, shape (N, K).
        portion: P, in 0..1.

    Returns:
        log t, shape (K,); 0, which only certainty reaches, for a class that keeps no pixel.
    """
    confidence, predicted = log_p.max(1)
    own = [confidence[predicted == k] for k in range(log_p.shape[1])]
    return torch.stack([_reached_by(values, portion) for values in own])


def global_threshold(log_p: Tensor, portion: float) -> Tensor:
    """One threshold for all classes: plain self-training, in which frequent classes crowd out the rare.

    Args:
        log_p: shape (N, K).
        portion: P, in 0..1.

    Returns:
        log t, shape (K,), all the same.
    """
    return _reached_by(log_p.max(1).values, portion).expand(log_p.shape[1]).clone()


def fda_thresholds(log_p: Tensor, quantile: float = 0.66, most: float = 0.9) -> Tensor:
    """For every class the quantile of its confidences, but never more than `most` (FDA).

    Args:
        log_p: shape (N, K).
        quantile: share that is left out.
        most: probability that always suffices.

    Returns:
        log t, shape (K,); -inf for a class that is never predicted.
    """
    return upper_thresholds(*log_p.max(1), log_p.shape[1], quantile, most)


def upper_thresholds(
    confidence: Tensor, predicted: Tensor, classes: int, quantile: float = 0.66, most: float = 0.9
) -> Tensor:
    """`fda_thresholds` of pixels of which only the predicted class is known: all of a large set fit into memory.

    Args:
        confidence: log p of the predicted classes, any shape.
        predicted: these classes, the same shape.
        classes: the number K.
        quantile: share that is left out.
        most: probability that always suffices.
    """
    thresholds = confidence.new_full((classes,), -math.inf)
    for k in range(classes):
        own = confidence[predicted == k].sort().values
        if len(own):
            thresholds[k] = own[min(round(quantile * len(own)), len(own) - 1)].clamp(max=math.log(most))
    return thresholds


def balanced_labels(log_p: Tensor, log_t: Tensor) -> Tensor:
    """The class with the largest p / t where this is 1 or more, otherwise `IGNORE`.

    Args:
        log_p: shape (n, K, ...).
        log_t: shape (K,).

    Returns:
        Shape (n, ...), uint8.
    """
    best, labels = _ratios(log_p, log_t).max(1)
    return labels.masked_fill(best < 0, IGNORE).to(torch.uint8)


def confident_labels(log_p: Tensor, log_t: Tensor) -> Tensor:
    """The predicted class where it reaches its own threshold, otherwise `IGNORE`; shapes of `balanced_labels`.

    A class whose threshold is -inf was never predicted and gets no pixel.
    """
    return labels_above(*log_p.max(1), log_t)


def labels_above(confidence: Tensor, predicted: Tensor, log_t: Tensor) -> Tensor:
    """`confident_labels` of pixels of which only the predicted class, int64, and its log p are known."""
    own = log_t[predicted]
    return predicted.masked_fill((confidence < own) | own.isneginf(), IGNORE).to(torch.uint8)


def soft_labels(log_p: Tensor, log_t: Tensor, alpha: float) -> Tensor:
    """Labels in proportion to (p / t)^(1/α), the best under a reward α for their entropy; 0 where none is better.

    Args:
        log_p: shape (n, K, ...).
        log_t: shape (K,).
        alpha: above 0; towards 0 they become those of `balanced_labels`.

    Returns:
        Shape (n, K, ...): every pixel sums to 1 or to 0.
    """
    scores = _ratios(log_p, log_t) / alpha
    return scores.softmax(1) * (scores.logsumexp(1, keepdim=True) >= 0)


def _ratios(log_p: Tensor, log_t: Tensor) -> Tensor:
    return log_p - log_t.view(-1, *[1] * (log_p.ndim - 2))


def _reached_by(values: Tensor, portion: float) -> Tensor:
    """The smallest of the portion of largest values; 0 where that is none."""
    count = math.floor(portion * len(values) + 1e-9)
    return values.topk(count).values[-1] if count else values.new_zeros(())
