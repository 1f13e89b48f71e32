"""Nearest neighbours by cosine similarity, and the bank of features that they are searched in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
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


class Bank(nn.Module):
    """Constant rows, none at first.

    Args:
        width: of a row.
    """

    rows: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.empty(0, width))

    def replace(self, rows: Tensor) -> None:
        """Keep a copy of these rows, shape (n, width), instead of the present ones."""
        self.rows = rows.detach().to(self.rows, copy=True)

    def forward(self) -> Tensor:
        """The rows, shape (n, width); an error before the first refresh."""
        if not len(self.rows):
            raise RuntimeError("this guide has seen no data yet: call its refresh(snapshot) before the first step")
        return self.rows

    def extra_repr(self) -> str:
        """How many there are."""
        return f"rows={len(self.rows)}"

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        saved = state_dict.get(prefix + "rows")
        if saved is not None and saved.shape[1:] == self.rows.shape[1:]:
            self.rows = self.rows.new_empty(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)
