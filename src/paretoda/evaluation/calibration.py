"""Confidence that means something on the target, without a label of it: one temperature (Guo et al., 2017).

The labels are those of the held-out source. Each sample counts by how much it looks like the target, as in
"Transferable Calibration with Lower Bias and Variance in Domain Adaptation" (Wang et al., 2020), which minimises
another error with such weights. A temperature changes no predicted class.
"""

from __future__ import annotations

from math import exp, isfinite, log
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from paretoda.domains import Snapshot
from paretoda.evaluation.validators.dev import DEV, truncated

_LEAST, _MOST = 1.0, 20.0
"""A model is not made more certain than it is: a held-out source without a mistake would make it so without end."""


def fit_temperature(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> float:
    """The temperature with the least weighted mean of -log p(label), p = softmax(logits / temperature).

    Args:
        logits: shape (n, K), n >= 1.
        labels: shape (n,).
        weights: of the samples, none negative, shape (n,); None: all alike.
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


def target_temperature(snapshot: Snapshot) -> float | None:
    """The temperature for the target; None where no source is held out or a number is not finite.

    Args:
        snapshot: of the model that is calibrated.
    """
    held_out = snapshot.held_out_source
    if len(held_out.labels) == 0 or not bool(held_out.logits.isfinite().all()):
        return None
    weights = truncated(DEV().weights(snapshot))
    if not np.isfinite(weights).all():
        return None
    return fit_temperature(held_out.logits.cpu(), held_out.labels.cpu(), torch.from_numpy(weights))


def checked_temperature(value: Any) -> float | None:
    """A temperature as a file says it; a ValueError where it is none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (isfinite(value) and value > 0):
        raise ValueError(f"the temperature {value!r} is no number above 0")
    return float(value)
