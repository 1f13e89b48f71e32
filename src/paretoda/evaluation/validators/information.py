"""Validators that see the target's predictions alone: entropy, information (IM), nuclear norm (BNM), Corr-C."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paretoda.types import Snapshot


def mean_entropy(logits: Tensor) -> float:
    """Mean over samples of -Σ p log p: 0 for one-hot, log K for uniform predictions.

    Args:
        logits: Logits, shape (n, K).
    """
    log_p = logits.double().log_softmax(dim=1)
    return float(-(log_p.exp() * log_p).sum(dim=1).mean())


@dataclass(frozen=True)
class Entropy:
    """Minus the mean entropy of the target's predictions; a collapse to one class gets the best score.

    Examples:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Target
        >>> snapshot = SimpleNamespace(target=Target(torch.zeros(4, 2), torch.zeros(4, 3), torch.arange(4)))
        >>> round(Entropy()(snapshot), 4)  # undecided: -log 3
        -1.0986
    """

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, in -log K..0."""
        return -mean_entropy(snapshot.target.logits)


def mutual_information(logits: Tensor) -> float:
    """H(mean p) - mean H(p): log K for balanced one-hot predictions, 0 for uniform and for collapsed ones.

    Args:
        logits: Logits, shape (n, K).
    """
    mean = logits.double().softmax(dim=1).mean(dim=0)
    return float(-mean.xlogy(mean).sum()) - mean_entropy(logits)


@dataclass(frozen=True)
class IM:
    """Mutual information of target samples and predicted classes.

    Examples:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Target
        >>> snapshot = SimpleNamespace(target=Target(torch.zeros(3, 2), 100 * torch.eye(3), torch.arange(3)))
        >>> round(IM()(snapshot), 4)  # certain and balanced: log 3
        1.0986
    """

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, in 0..log K."""
        return mutual_information(snapshot.target.logits)


def nuclear_norm_per_sample(probabilities: Tensor) -> float:
    """Sum of the singular values over n: 1 for I_K, √(K/n) at best, 1/√(nK) for uniform predictions.

    Args:
        probabilities: Probabilities, shape (n, K).
    """
    return float(torch.linalg.svdvals(probabilities.double()).sum() / len(probabilities))


@dataclass(frozen=True)
class BNM:
    """Nuclear norm of all predictions on the target, over their number; comparable only on the same target.

    Examples:
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Target
        >>> snapshot = SimpleNamespace(target=Target(torch.zeros(3, 2), 100 * torch.eye(3), torch.arange(3)))
        >>> round(BNM()(snapshot), 4)
        1.0
    """

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, in 1/√(nK)..√(K/n)."""
        return nuclear_norm_per_sample(snapshot.target.logits.double().softmax(dim=1))


def class_correlation(probabilities: Tensor) -> float:
    """tr(C) / (√K |C|) of C = PᵀP, the cosine of C and I: 1 for balanced one-hots, 1/√K for uniform or collapsed ones.

    Args:
        probabilities: Probabilities, shape (n, K).
    """
    p = probabilities.double()
    c = p.T @ p
    return float(c.trace() / (c.norm() * c.shape[0] ** 0.5))


@dataclass(frozen=True)
class CorrC:
    """Cosine of the class correlations of the target's predictions and the identity.

    Examples:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Target
        >>> snapshot = SimpleNamespace(target=Target(torch.zeros(4, 2), torch.zeros(4, 4), torch.arange(4)))
        >>> round(CorrC()(snapshot), 4)  # uniform predictions: 1/√4
        0.5
    """

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, in 1/√K..1."""
        return class_correlation(snapshot.target.logits.double().softmax(dim=1))
