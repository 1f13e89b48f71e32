"""Weights that depend on a preference: one network for the whole front (Navon et al., 2021, "Pareto HyperNetworks")."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional


class Hypernetwork(nn.Module):
    """Tensors of a preference r: T_k(r) = B_k + A_k (z(r) - z(1/m)), where z is r and the output of a small network.

    The equal preference 1/m has the tensors B, which are trained like any others; A only has to learn how preferences
    differ. Without r itself in z, gradient descent teaches the small network one output for all preferences, because
    what they have in common dominates. A starts at zero: at first every preference has the same network.

    Args:
        losses: m, the length of r.
        start: Initial tensors B.
        hidden: Width of the three layers of the small network.

    Examples:
        >>> network = Hypernetwork(losses=2, start=[torch.ones(3)])
        >>> network.prefer(torch.tensor([0.9, 0.1]))
        >>> [tensor.tolist() for tensor in network()]
        [[1.0, 1.0, 1.0]]
    """

    preference: Tensor

    def __init__(self, losses: int, start: Sequence[Tensor], hidden: int = 100) -> None:
        super().__init__()
        widths = (losses, hidden, hidden, hidden)
        layers = [nn.Linear(before, after) for before, after in pairwise(widths)]
        self.trunk = nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))
        self.base = nn.ParameterList(tensor.detach().clone() for tensor in start)
        self.ways = nn.ParameterList(torch.zeros(tensor.numel(), losses + hidden) for tensor in start)
        self.register_buffer("preference", torch.full((losses,), 1 / losses))

    def prefer(self, preference: Tensor) -> None:
        """Set the preference, shape (m,)."""
        self.preference = preference.to(self.preference)  # a new tensor: an earlier graph keeps its own

    def forward(self) -> list[Tensor]:
        """Return the tensors of the present preference."""
        answer = self._answer(self.preference) - self._answer(
            torch.full_like(self.preference, 1 / len(self.preference))
        )
        return [base + (way @ answer).view_as(base) for base, way in zip(self.base, self.ways, strict=True)]

    def _answer(self, preference: Tensor) -> Tensor:
        """Return (u, h / √(1 + |h|²)), u = r - 1/m over its length at a corner: A learns about as fast as B."""
        size = len(preference)
        centred = (size * preference - 1) / sqrt(max(size * (size - 1), 1))
        hidden: Tensor = self.trunk(centred)
        return torch.cat([centred, hidden / (1 + hidden.square().sum()).sqrt()])


class Modulation(nn.Module):
    """Features times a scale plus a shift, both of which depend on the preference (FiLM; Perez et al., 2018).

    It stands behind the last BatchNorm, whose statistics then hold for every preference.

    Args:
        losses: Length of the preference.
        width: Width d of the features.
    """

    def __init__(self, losses: int, width: int) -> None:
        super().__init__()
        self.generated = Hypernetwork(losses, [torch.ones(width), torch.zeros(width)])

    def forward(self, features: Tensor) -> Tensor:
        """Map features (n, d) to (n, d)."""
        generated: list[Tensor] = self.generated()
        scale, shift = generated
        return features * scale + shift


class PreferredHead(nn.Module):
    """Linear classifier whose weights depend on the preference.

    Args:
        losses: Length of the preference.
        width: Width d of the features.
        classes: Number of classes K.
    """

    def __init__(self, losses: int, width: int, classes: int) -> None:
        super().__init__()
        start = nn.init.xavier_normal_(torch.empty(classes, width))
        self.generated = Hypernetwork(losses, [start, torch.zeros(classes)])

    @property
    def weight(self) -> Tensor:
        """Weights of the present preference, shape (K, d)."""
        weight: Tensor = self.generated()[0]
        return weight

    def forward(self, features: Tensor) -> Tensor:
        """Map features (n, d) to logits (n, K)."""
        weight, bias = self.generated()
        return functional.linear(features, weight, bias)
