"""Errors of predicted values, given the true ones: finite, in the units of the values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def measure_values(predicted: Values, values: Values) -> dict[str, float]:
    """Return the mean absolute error, the root of the mean squared error, and R².

    R² is the share of the variance that the predictions explain: 1 for perfect predictions, 0 for their mean, and below
    0 for anything worse. Of equal values nothing can be explained, and R² is 0.

    Args:
        predicted: Predicted values, shape (n,).
        values: True values, shape (n,), n >= 1.

    Examples:
        >>> measure_values(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0]))["r2"]
        0.5
    """
    errors = np.asarray(predicted, dtype=np.float64) - values
    spread = float(np.square(values - values.mean()).mean())
    square = float(np.square(errors).mean())
    return {
        "mae": float(np.abs(errors).mean()),
        "rmse": square**0.5,
        "r2": 1 - square / spread if spread > 0 else 0.0,
    }
