"""The only place that target labels enter: every name says oracle, and so does every number that comes from here."""

from __future__ import annotations

from torch import Tensor

from paretoda.evaluation.metrics import accuracy, mean_per_class


def oracle_accuracy(logits: Tensor, oracle_labels: Tensor) -> float:
    """The share of target samples that are classified rightly; no training may see it.

    Args:
        logits: of the target, shape (n, K).
        oracle_labels: of the target, shape (n,).
    """
    return accuracy(logits.argmax(dim=1), oracle_labels)


def oracle_mean_per_class(logits: Tensor, oracle_labels: Tensor) -> float:
    """The mean of the recalls of the target's classes; no training may see it.

    Args:
        logits: of the target, shape (n, K).
        oracle_labels: of the target, shape (n,).
    """
    return mean_per_class(logits.argmax(dim=1), oracle_labels, logits.shape[1])


def oracle_best(oracle_accuracies: list[float]) -> int:
    """The first checkpoint of the highest oracle accuracy: an upper bound for any choice, not a way to choose.

    Args:
        oracle_accuracies: oracle accuracy of each checkpoint.
    """
    return max(range(len(oracle_accuracies)), key=oracle_accuracies.__getitem__)
