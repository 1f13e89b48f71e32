"""BatchNorm of an adversary: whose statistics are used, and whether they are remembered, is said at every call.

An adversary runs twice in a step, once for the encoder and once for itself; only the second may be remembered.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

Statistics = Literal["batch", "learn", "running"]
"""Those of the batch, those of the batch and remember them, or the remembered ones."""

_MOMENTUM = 0.1


def normalise(rows: Tensor, layer: nn.BatchNorm1d, statistics: Statistics) -> Tensor:
    """Zero mean and unit variance for every channel, then the layer's scale and shift.

    The remembered statistics are copied before use: a later "learn" would write into what backward still needs.

    Args:
        rows: shape (n, channels) or (1, channels, n); n > 1 unless the statistics are the running ones.
        layer: holds scale, shift and running statistics.
        statistics: see `Statistics`.
    """
    mean, variance = layer.running_mean, layer.running_var
    if statistics == "batch":
        mean, variance = None, None
    elif statistics == "running" and mean is not None and variance is not None:
        mean, variance = mean.clone(), variance.clone()
    training = statistics != "running"
    return functional.batch_norm(rows, mean, variance, layer.weight, layer.bias, training, _MOMENTUM, layer.eps)
