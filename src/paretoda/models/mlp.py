"""A multilayer perceptron: the encoder of feature data, whose last width is the bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import nn


def mlp(
    inputs: int,
    widths: Sequence[int] = (512, 256),
    *,
    norm: Literal["batch", "none"] = "batch",
    dropout: float = 0.0,
) -> nn.Sequential:
    """Linear layers, each with BatchNorm, ReLU and dropout behind it: (n, inputs) to (n, widths[-1]).

    Args:
        inputs: width of the data.
        widths: of the layers; the last is the width of the features.
        norm: "batch": BatchNorm after every linear layer; "none": nothing there.
        dropout: probability that a feature is dropped in training; 0 leaves the layer out.
    """
    if not widths:
        raise ValueError("an MLP needs at least one layer, widths is empty")
    if norm not in ("batch", "none"):
        raise ValueError(f"norm must be 'batch' or 'none', got {norm!r}")
    layers: list[nn.Module] = []
    for before, after in zip((inputs, *widths[:-1]), widths, strict=True):
        layers.append(nn.Linear(before, after))
        if norm == "batch":
            layers.append(nn.BatchNorm1d(after))
        layers.append(nn.ReLU())
        if dropout > 0:
            layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers)
