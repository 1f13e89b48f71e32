"""Metrics of predictions, given the labels: fractions 0..1, and never NaN.

A class without a sample has no recall: it is left out of `per_class_recall` and of its mean, and does not count as 0.
"""

from __future__ import annotations

import torch
from torch import Tensor


def accuracy(predicted: Tensor, labels: Tensor) -> float:
    """Share of samples whose predicted class is their label.

    Args:
        predicted: Predicted classes, shape (n,), n >= 1.
        labels: Labels, shape (n,).

    Examples:
        >>> accuracy(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 1, 2, 2]))
        0.75
    """
    _check(predicted, labels)
    return float((predicted == labels).double().mean())


def confusion_matrix(predicted: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Number of times that label i was predicted as class j: shape (K, K), int64, rows are labels.

    Args:
        predicted: Predicted classes, shape (n,), in 0..K-1.
        labels: Labels, shape (n,), in 0..K-1.
        classes: Number of classes K.

    Raises:
        ValueError: The shapes differ, or a class is out of range.

    Examples:
        >>> confusion_matrix(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]), classes=2)
        tensor([[1, 1],
                [0, 1]])
    """
    _check(predicted, labels)
    for name, values in (("predictions", predicted), ("labels", labels)):
        if int(values.min()) < 0 or int(values.max()) >= classes:
            raise ValueError(f"the {name} must lie in 0..{classes - 1}")
    return torch.bincount(labels.long() * classes + predicted.long(), minlength=classes**2).view(classes, classes)


def per_class_recall(predicted: Tensor, labels: Tensor, classes: int) -> dict[int, float]:
    """Class -> share of its samples that were predicted as it, for classes that have samples.

    Args:
        predicted: Predicted classes, shape (n,).
        labels: Labels, shape (n,).
        classes: Number of classes K.

    Examples:
        >>> per_class_recall(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]), classes=3)
        {0: 0.5, 1: 1.0}
    """
    matrix = confusion_matrix(predicted, labels, classes).double()
    samples, found = matrix.sum(dim=1).tolist(), matrix.diagonal().tolist()
    return {k: found[k] / samples[k] for k in range(classes) if samples[k] > 0}


def mean_per_class(predicted: Tensor, labels: Tensor, classes: int) -> float:
    """Mean of the recalls of the classes that have samples: the score of VisDA.

    Args:
        predicted: Predicted classes, shape (n,).
        labels: Labels, shape (n,).
        classes: Number of classes K.

    Examples:
        >>> mean_per_class(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]), classes=3)
        0.75
    """
    recalls = per_class_recall(predicted, labels, classes)
    return sum(recalls.values()) / len(recalls)


def expected_calibration_error(logits: Tensor, labels: Tensor, bins: int = 15) -> float:
    """Difference between confidence and accuracy, averaged over bins of equal width (Guo et al., 2017).

    Args:
        logits: Logits, shape (n, K).
        labels: Labels, shape (n,).
        bins: Number of bins, half-open [a, b), the last one closed.

    Examples:
        >>> expected_calibration_error(torch.zeros(2, 2), torch.tensor([0, 1]))  # confidence 1/2, accuracy 1/2
        0.0
    """
    confidence, predicted = logits.double().softmax(dim=1).max(dim=1)
    _check(predicted, labels)
    place = (confidence * bins).long().clamp(max=bins - 1)
    gaps = torch.zeros(bins, dtype=torch.float64, device=logits.device)
    gaps.index_add_(0, place, confidence - (predicted == labels).double())
    return float(gaps.abs().sum() / len(labels))


def selective(probabilities: Tensor, labels: Tensor, threshold: float) -> dict[str, float | None]:
    """Share of samples that are answered, and the accuracy on these; None where there are none.

    Args:
        probabilities: Probabilities, shape (n, K).
        labels: Labels, shape (n,).
        threshold: Confidence below which a sample is not answered.

    Examples:
        >>> selective(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]), threshold=0.8)
        {'coverage': 0.5, 'selective_accuracy': 1.0}
    """
    confidence, predicted = probabilities.max(dim=1)
    _check(predicted, labels)
    answered = confidence.double() >= threshold
    right = accuracy(predicted[answered], labels[answered]) if bool(answered.any()) else None
    return {"coverage": float(answered.double().mean()), "selective_accuracy": right}


def open_set_scores(predicted: Tensor, labels: Tensor, classes: int) -> dict[str, float | None]:
    """Scores of predictions that may be "unknown": of known classes, of the unknown, and the harmonic mean of both.

    The known accuracy a is the mean of the recalls of the known classes, the unknown accuracy b the share of samples of
    other classes that are called unknown, and the H-score 2ab / (a + b) (Fu et al., 2020). A score without samples is
    None.

    Args:
        predicted: Predictions, shape (n,), in 0..K; K is "unknown".
        labels: Labels, shape (n,), in 0..K.
        classes: Number of known classes K.

    Examples:
        >>> open_set_scores(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 0, 2, 2]), classes=2)
        {'known_accuracy': 0.5, 'unknown_accuracy': 0.5, 'h_score': 0.5}
    """
    recalls = per_class_recall(predicted, labels, classes + 1)
    unknown = recalls.pop(classes, None)
    known = sum(recalls.values()) / len(recalls) if recalls else None
    score = None
    if known is not None and unknown is not None:
        score = 2 * known * unknown / (known + unknown) if known + unknown > 0 else 0.0
    return {"known_accuracy": known, "unknown_accuracy": unknown, "h_score": score}


def _check(predicted: Tensor, labels: Tensor) -> None:
    if predicted.shape != labels.shape or labels.ndim != 1 or len(labels) == 0:
        shapes = f"predictions {tuple(predicted.shape)} and labels {tuple(labels.shape)}"
        raise ValueError(f"{shapes} must be two lists of the same length, at least 1")
