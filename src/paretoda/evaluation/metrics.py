"""How good predictions are, given the labels: fractions 0..1, and never NaN.

A class without a sample has no recall: it is left out of `per_class_recall` and of its mean, it does not count as 0.
"""

from __future__ import annotations

import torch
from torch import Tensor


def accuracy(predicted: Tensor, labels: Tensor) -> float:
    """The share of samples whose predicted class is their label.

    Args:
        predicted: Classes, shape (n,), n >= 1.
        labels: Shape (n,).
    """
    _check(predicted, labels)
    return float((predicted == labels).double().mean())


def confusion_matrix(predicted: Tensor, labels: Tensor, classes: int) -> Tensor:
    """How often label i was predicted as class j: shape (K, K), int64, rows are labels.

    Args:
        predicted: Classes, shape (n,), in 0..K-1.
        labels: Shape (n,), in 0..K-1.
        classes: Number of classes K.
    """
    _check(predicted, labels)
    for name, values in (("predictions", predicted), ("labels", labels)):
        if int(values.min()) < 0 or int(values.max()) >= classes:
            raise ValueError(f"the {name} must lie in 0..{classes - 1}")
    return torch.bincount(labels.long() * classes + predicted.long(), minlength=classes**2).view(classes, classes)


def per_class_recall(predicted: Tensor, labels: Tensor, classes: int) -> dict[int, float]:
    """Class -> the share of its samples that were found; only classes that have samples are listed.

    Args:
        predicted: Classes, shape (n,).
        labels: Shape (n,).
        classes: Number of classes K.
    """
    matrix = confusion_matrix(predicted, labels, classes).double()
    samples, found = matrix.sum(dim=1).tolist(), matrix.diagonal().tolist()
    return {k: found[k] / samples[k] for k in range(classes) if samples[k] > 0}


def mean_per_class(predicted: Tensor, labels: Tensor, classes: int) -> float:
    """The mean of the recalls of the classes that have samples: the score of VisDA.

    Args:
        predicted: Classes, shape (n,).
        labels: Shape (n,).
        classes: Number of classes K.
    """
    recalls = per_class_recall(predicted, labels, classes)
    return sum(recalls.values()) / len(recalls)


def expected_calibration_error(logits: Tensor, labels: Tensor, bins: int = 15) -> float:
    """How far the confidence is from the accuracy, averaged over bins of equal width (Guo et al., 2017).

    Args:
        logits: Shape (n, K).
        labels: Shape (n,).
        bins: Half-open [a, b), the last one closed.
    """
    confidence, predicted = logits.double().softmax(dim=1).max(dim=1)
    _check(predicted, labels)
    place = (confidence * bins).long().clamp(max=bins - 1)
    gaps = torch.zeros(bins, dtype=torch.float64, device=logits.device)
    gaps.index_add_(0, place, confidence - (predicted == labels).double())
    return float(gaps.abs().sum() / len(labels))


def selective(probabilities: Tensor, labels: Tensor, threshold: float) -> dict[str, float | None]:
    """The share of samples that are answered, and the accuracy on these: None where there are none.

    Args:
        probabilities: Shape (n, K).
        labels: Shape (n,).
        threshold: Samples with a lower confidence are not answered.
    """
    confidence, predicted = probabilities.max(dim=1)
    _check(predicted, labels)
    answered = confidence.double() >= threshold
    right = accuracy(predicted[answered], labels[answered]) if bool(answered.any()) else None
    return {"coverage": float(answered.double().mean()), "selective_accuracy": right}


def _check(predicted: Tensor, labels: Tensor) -> None:
    if predicted.shape != labels.shape or labels.ndim != 1 or len(labels) == 0:
        shapes = f"predictions {tuple(predicted.shape)} and labels {tuple(labels.shape)}"
        raise ValueError(f"{shapes} must be two lists of the same length, at least 1")
