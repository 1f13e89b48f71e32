"""Nearest neighbours by cosine similarity, and banks of constant rows to search in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

_AT_ONCE = 1024
"""Number of rows whose similarities with all others are held in memory together."""


def find_nearest(features: Tensor, k: int) -> Tensor:
    """Positions of the k nearest other samples of each sample, by cosine.

    Args:
        features: Features, shape (n, d).
        k: Number of neighbours.

    Returns:
        Shape (n, k), int64; with fewer than k others, the last columns hold the sample itself.

    Examples:
        >>> find_nearest(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), k=1).squeeze(1)
        tensor([1, 0, 1])
    """
    rows = functional.normalize(features, dim=1)
    nearest = []
    for own in torch.split(torch.arange(len(rows), device=rows.device), _AT_ONCE):
        similarity = rows[own] @ rows.T
        similarity[torch.arange(len(own)), own] = -torch.inf
        others = similarity.topk(min(k, len(rows) - 1), dim=1).indices
        nearest.append(torch.cat([others, own.unsqueeze(1).expand(-1, k - others.shape[1])], dim=1))
    return torch.cat(nearest)


def find_mutual(places: Tensor) -> Tensor:
    """Whether the sample is among the neighbours of each of its neighbours.

    Args:
        places: Positions of the neighbours of each sample, shape (n, k).

    Returns:
        Shape (n, k), bool.
    """
    own = torch.arange(len(places), device=places.device)
    back = [(places[column] == own.unsqueeze(1)).any(1) for column in places.unbind(1)]
    return torch.stack(back, dim=1)


class Bank(nn.Module):
    """Constant rows; empty at first.

    Args:
        width: Width of a row.
    """

    rows: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.empty(0, width))

    def replace(self, rows: Tensor) -> None:
        """Store a copy of these rows, shape (n, width), instead of the present ones."""
        self.rows = rows.detach().to(self.rows, copy=True)

    def update(self, index: Tensor, rows: Tensor) -> None:
        """Store these rows, shape (m, width), at the positions `index`, shape (m,), of the present ones."""
        self.rows[index] = rows.detach().to(self.rows)

    def forward(self) -> Tensor:
        """Return the rows, shape (n, width).

        Raises:
            RuntimeError: There was no refresh yet.
        """
        if not len(self.rows):
            raise RuntimeError("this objective has seen no data yet: call its refresh(snapshot) before the first step")
        return self.rows

    def extra_repr(self) -> str:
        """Return the number of rows."""
        return f"rows={len(self.rows)}"

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        saved = state_dict.get(prefix + "rows")
        if saved is not None and saved.shape[1:] == self.rows.shape[1:]:
            self.rows = self.rows.new_empty(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)
