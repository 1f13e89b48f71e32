"""Domain discriminators: the network, its BatchNorm, its loss, and the warm-up of adversarial objectives."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

Statistics = Literal["batch", "learn", "defer", "running"]
"""BatchNorm statistics: those of the batch; the same, and update the running ones at once ("learn") or in
`learn_deferred` ("defer"); or the running ones."""

_MOMENTUM = 0.1
_DEFERRED = "deferred"


def normalise(rows: Tensor, layer: nn.BatchNorm1d, statistics: Statistics) -> Tensor:
    """Zero mean and unit variance for every channel, then the scale and shift of the layer.

    The running statistics are copied before use: a later "learn" would otherwise overwrite what backward still needs.

    Args:
        rows: Shape (n, channels) or (1, channels, n); n > 1 unless the statistics are the running ones.
        layer: BatchNorm layer with scale, shift and running statistics.
        statistics: See `Statistics`.
    """
    mean, variance = layer.running_mean, layer.running_var
    if statistics == "batch":
        mean, variance = None, None
    elif statistics != "learn" and mean is not None and variance is not None:
        mean, variance = mean.clone(), variance.clone()
    if statistics == "defer":
        layer.__dict__[_DEFERRED] = (mean, variance)
    training = statistics != "running"
    return functional.batch_norm(rows, mean, variance, layer.weight, layer.bias, training, _MOMENTUM, layer.eps)


@torch.no_grad()
def learn_deferred(network: nn.Module) -> None:
    """Update the running statistics of all layers by their last call with "defer", as "learn" would have done."""
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm1d) and _DEFERRED in layer.__dict__:
            layer.running_mean, layer.running_var = layer.__dict__.pop(_DEFERRED)


def warm_up(progress: float) -> float:
    """2 / (1 + exp(-10 p)) - 1 for the completed share p of the training.

    Args:
        progress: 0 at the first step, 1 at the end.

    Examples:
        >>> warm_up(0.0), round(warm_up(1.0), 4)
        (0.0, 0.9999)
    """
    return math.tanh(5 * ramp(progress))


def ramp(progress: float) -> float:
    """The share p itself: linear growth.

    Args:
        progress: 0 at the first step, 1 at the end.

    Raises:
        ValueError: The progress does not lie in 0..1.
    """
    if not 0 <= progress <= 1:
        raise ValueError(f"progress is a share of the training and lies in 0..1, got {progress}")
    return progress


def domain_cross_entropy(source: Tensor, target: Tensor, weights: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """Half the source's mean of -log D plus half the target's mean of -log(1 - D), from scores; log 2 where D = 1/2.

    Args:
        source: Scores (log-odds of "source") of source rows, shape (n,).
        target: Scores of target rows, shape (m,).
        weights: Weights of the source rows (n,) and of the target rows (m,); None: all are equal.

    Examples:
        >>> round(domain_cross_entropy(torch.zeros(3), torch.zeros(5)).item(), 4)
        0.6931
    """
    source_losses, target_losses = functional.softplus(-source), functional.softplus(target)
    if weights is not None:
        source_losses, target_losses = weights[0] * source_losses, weights[1] * target_losses
    return (source_losses.mean() + target_losses.mean()) / 2


class Discriminator(nn.Module):
    """Two hidden layers with BatchNorm and ReLU, then one score for each output.

    Args:
        inputs: Width d of the rows.
        hidden: Width of the hidden layers.
        outputs: 1 for one discriminator; K for K that share their hidden layers.
    """

    def __init__(self, inputs: int, hidden: int, outputs: int = 1) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.first_norm = nn.BatchNorm1d(hidden)
        self.second = nn.Linear(hidden, hidden)
        self.second_norm = nn.BatchNorm1d(hidden)
        self.last = nn.Linear(hidden, outputs)

    def forward(self, rows: Tensor, statistics: Statistics) -> Tensor:
        """Return the scores of the rows (n, d), shape (n, outputs)."""
        once = torch.relu(normalise(self.first(rows), self.first_norm, statistics))
        twice = torch.relu(normalise(self.second(once), self.second_norm, statistics))
        scores: Tensor = self.last(twice)
        return scores
