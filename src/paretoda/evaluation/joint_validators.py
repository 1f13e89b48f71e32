"""Validators that score all candidates of a run together, by their predictions; higher is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor


def ensv(predictions: Sequence[Tensor]) -> list[float]:
    """Share of target samples on which a candidate agrees with the mean of all (EnsV; Hu et al., NeurIPS 2024).

    It avoids the worst candidates; where most candidates err together, it prefers those that err with them.

    Args:
        predictions: Probabilities of the same target samples by every candidate, shape (n, K) each.

    Returns:
        One score in 0..1 for each candidate; NaN for one whose predictions are not finite, which has no vote.

    Raises:
        ValueError: The candidates predicted different numbers of samples or classes.

    Examples:
        >>> sure, swapped = torch.eye(2), torch.eye(2).flip(0)
        >>> ensv([sure, 0.8 * sure + 0.1, swapped])
        [1.0, 1.0, 0.0]
    """
    if len({own.shape for own in predictions}) > 1:
        raise ValueError("the candidates must have predicted the same samples")
    finite = [bool(own.isfinite().all()) for own in predictions]
    voting = [own.double() for own, counts in zip(predictions, finite, strict=True) if counts]
    if not voting:
        return [float("nan")] * len(predictions)
    agreed = torch.stack(voting).sum(dim=0).argmax(dim=1)
    return [
        float((own.argmax(dim=1) == agreed).double().mean()) if counts else float("nan")
        for own, counts in zip(predictions, finite, strict=True)
    ]


JOINT_VALIDATORS: Mapping[str, Callable[[Sequence[Tensor]], list[float]]] = {"ensv": ensv}
"""Name -> function of the predictions of all candidates; it is called when all are known."""
