"""Calibrated confidence without target labels: one temperature for all logits (Guo et al., 2017).

It is fitted to the labels of the held-out source and changes no predicted class. Weights that emphasise samples similar
to the target, as in "Transferable Calibration with Lower Bias and Variance in Domain Adaptation" (Wang et al., 2020),
can be given, but runs give none: with few held-out samples a handful of them decides, and on our data nothing was
gained (docs/using-the-model.md).
"""

from __future__ import annotations

from math import exp, isfinite, log
from typing import Any

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from paretoda.types import Snapshot

_LEAST, _MOST = 1.0, 20.0
"""Range of the temperature; below 1 a held-out source without a mistake would make a model arbitrarily certain."""


def fit_temperature(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> float:
    """The temperature with the least weighted mean of -log p(label), p = softmax(logits / temperature).

    Args:
        logits: Logits, shape (n, K), n >= 1.
        labels: Labels, shape (n,).
        weights: Weights of the samples, non-negative, shape (n,); None: all are equal.

    Returns:
        The temperature, from 1 to 20.

    Examples:
        >>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [4.0, 0.0]])
        >>> fit_temperature(logits, torch.tensor([0, 0, 0, 1])) > 1  # too certain for 3 of 4 right
        True
    """
    scores, places = logits.double(), labels.long().unsqueeze(1)
    shares = torch.ones(len(labels), dtype=torch.float64) if weights is None else weights.double()
    if not bool(shares.sum() > 0):
        shares = torch.ones_like(shares)

    def risk(heat: float) -> float:
        losses = -torch.log_softmax(scores * exp(-heat), 1).gather(1, places).squeeze(1)
        return float((shares * losses).sum() / shares.sum())

    low, high = log(_LEAST), log(_MOST)
    found = minimize_scalar(risk, bounds=(low, high), method="bounded", options={"xatol": 1e-6})
    return round(exp(min((low, float(found.x), high), key=risk)), 4)


def source_temperature(snapshot: Snapshot) -> float | None:
    """The temperature that calibrates the held-out source; None without samples, or where a logit is not finite.

    Args:
        snapshot: Snapshot of the model that is calibrated.
    """
    held_out = snapshot.held_out_source
    if len(held_out.labels) == 0 or not bool(held_out.logits.isfinite().all()):
        return None
    return fit_temperature(held_out.logits.cpu(), held_out.labels.cpu())


def parse_temperature(value: Any) -> float | None:
    """Return a temperature that was read from a file.

    Raises:
        ValueError: It is not a positive number.

    Examples:
        >>> parse_temperature(2), parse_temperature(None)
        (2.0, None)
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (isfinite(value) and value > 0):
        raise ValueError(f"the temperature {value!r} is no number above 0")
    return float(value)
