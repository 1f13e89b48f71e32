"""Confidence that means something, without a label of the target: one temperature for all logits (Guo et al., 2017).

It is fitted to the labels of the held-out source, and changes no predicted class. Weights for samples that look like
the target, as in "Transferable Calibration with Lower Bias and Variance in Domain Adaptation" (Wang et al., 2020), can
be given, and runs give none: with few held-out samples a handful of them decides, and on our data nothing was gained
(docs/using-the-model.md).
"""

from __future__ import annotations

from math import exp, isfinite, log
from typing import Any

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from paretoda.types import Snapshot

_LEAST, _MOST = 1.0, 20.0
"""A model is not made more certain than it is: a held-out source without a mistake would make it so without end."""


def fit_temperature(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> float:
    """The temperature with the least weighted mean of -log p(label), p = softmax(logits / temperature).

    Args:
        logits: Shape (n, K), n >= 1.
        labels: Shape (n,).
        weights: Of the samples, none negative, shape (n,); None: all alike.
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
    """The temperature by the held-out source; None where there is none, or a logit is not finite.

    Args:
        snapshot: Of the model that is calibrated.
    """
    held_out = snapshot.held_out_source
    if len(held_out.labels) == 0 or not bool(held_out.logits.isfinite().all()):
        return None
    return fit_temperature(held_out.logits.cpu(), held_out.labels.cpu())


def parse_temperature(value: Any) -> float | None:
    """A temperature as a file says it; a ValueError where it is none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (isfinite(value) and value > 0):
        raise ValueError(f"the temperature {value!r} is no number above 0")
    return float(value)
