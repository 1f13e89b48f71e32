"""Nearest neighbours by cosine similarity, averages over them, and banks of constant rows to search in."""

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


def propagate(predictions: Tensor, places: Tensor, shares: Tensor, *, rounds: int) -> Tensor:
    """Average the predictions repeatedly with those of neighbours; each round keeps half of a sample's own.

    Args:
        predictions: Probabilities, shape (n, K).
        places: Positions of the neighbours of each sample, shape (n, k).
        shares: Weights of the neighbours in the average, shape (n, k), with sums of at most 1; the sample itself has
            the remaining weight.
        rounds: Number of rounds.

    Returns:
        Probabilities, shape (n, K).

    Examples:
        >>> pair = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> propagate(pair, torch.tensor([[1], [0]]), torch.ones(2, 1), rounds=1)
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
    """
    own = 1 - shares.sum(1, keepdim=True)
    for _ in range(rounds):
        neighbours = (shares.unsqueeze(2) * predictions[places]).sum(1) + own * predictions
        predictions = (predictions + neighbours) / 2
    return predictions


def weigh_neighbours(places: Tensor) -> Tensor:
    """Equal weights of the neighbours that choose each other, 0 for the others and for the sample itself.

    Args:
        places: Positions of the neighbours of each sample, shape (n, k); the sample itself where there are fewer.

    Returns:
        Shape (n, k), with sums of at most 1.
    """
    others = places != torch.arange(len(places), device=places.device).unsqueeze(1)
    return (find_mutual(places) & others) / others.sum(1, keepdim=True).clamp(min=1)


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
