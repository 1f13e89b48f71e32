"""Weights that follow a preference: one network for the whole front (Navon et al., 2021, "Pareto HyperNetworks")."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional


class Hypernetwork(nn.Module):
    """From a preference r to tensors: T_k(r) = B_k + A_k (z(r) - z(1/m)); z is r itself and a small network's answer.

    The equal preference 1/m has the tensors B, which are trained like any others; A has only to learn how preferences
    differ. Without r itself in z, gradient descent teaches the small network one answer for all preferences, because
    what they have in common pulls hardest. A starts at zero: at first every preference has the same network.

    Args:
        losses: m, the length of r.
        start: The tensors at the beginning, B.
        hidden: Width of the small network's three layers.
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
        """Answer for this preference from now on, shape (m,)."""
        self.preference = preference.to(self.preference)  # a new tensor: an earlier graph keeps its own

    def forward(self) -> list[Tensor]:
        """The tensors of the present preference."""
        answer = self._answer(self.preference) - self._answer(
            torch.full_like(self.preference, 1 / len(self.preference))
        )
        return [base + (way @ answer).view_as(base) for base, way in zip(self.base, self.ways, strict=True)]

    def _answer(self, preference: Tensor) -> Tensor:
        """The pair (u, h / √(1 + |h|²)), u = r - 1/m over its length at a corner: A learns at about the rate of B."""
        size = len(preference)
        centred = (size * preference - 1) / sqrt(max(size * (size - 1), 1))
        hidden: Tensor = self.trunk(centred)
        return torch.cat([centred, hidden / (1 + hidden.square().sum()).sqrt()])


class Modulation(nn.Module):
    """Features times a scale plus a shift, both of the preference (FiLM; Perez et al., 2018).

    It stands behind the last BatchNorm: what that remembers is then true for every preference.

    Args:
        losses: Length of the preference.
        width: d, of the features.
    """

    def __init__(self, losses: int, width: int) -> None:
        super().__init__()
        self.generated = Hypernetwork(losses, [torch.ones(width), torch.zeros(width)])

    def forward(self, features: Tensor) -> Tensor:
        """Shape (n, d) to (n, d)."""
        generated: list[Tensor] = self.generated()
        scale, shift = generated
        return features * scale + shift


class PreferredHead(nn.Module):
    """A linear classifier whose weights are of the preference.

    Args:
        losses: Length of the preference.
        width: d, of the features.
        classes: Number of classes K.
    """

    def __init__(self, losses: int, width: int, classes: int) -> None:
        super().__init__()
        start = nn.init.xavier_normal_(torch.empty(classes, width))
        self.generated = Hypernetwork(losses, [start, torch.zeros(classes)])

    @property
    def weight(self) -> Tensor:
        """Of the present preference, shape (K, d)."""
        weight: Tensor = self.generated()[0]
        return weight

    def forward(self, features: Tensor) -> Tensor:
        """Features (n, d) to logits (n, K)."""
        weight, bias = self.generated()
        return functional.linear(features, weight, bias)
