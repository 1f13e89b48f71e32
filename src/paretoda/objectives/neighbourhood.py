"""Who is near whom: nearest others by cosine, and which of them are mutual."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_AT_ONCE = 1024
"""Rows whose similarities with all others are held in memory together."""


def nearest_others(features: Tensor, k: int) -> Tensor:
    """The places of each sample's k nearest others, by cosine.

    Args:
        features: shape (n, d).
        k: number of neighbours.

    Returns:
        Shape (n, k), int64; where there are fewer than k others the sample itself stands in the last columns.
    """
    rows = functional.normalize(features, dim=1)
    nearest = []
    for own in torch.split(torch.arange(len(rows), device=rows.device), _AT_ONCE):
        similarity = rows[own] @ rows.T
        similarity[torch.arange(len(own)), own] = -torch.inf
        others = similarity.topk(min(k, len(rows) - 1), dim=1).indices
        nearest.append(torch.cat([others, own.unsqueeze(1).expand(-1, k - others.shape[1])], dim=1))
    return torch.cat(nearest)


def mutual(places: Tensor) -> Tensor:
    """Which neighbours have the sample among theirs.

    Args:
        places: of each sample's neighbours, shape (n, k).

    Returns:
        Shape (n, k), bool.
    """
    own = torch.arange(len(places), device=places.device)
    back = [(places[column] == own.unsqueeze(1)).any(1) for column in places.unbind(1)]
    return torch.stack(back, dim=1)
