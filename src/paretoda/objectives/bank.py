"""Rows that a refresh replaces, however many they are, and that are saved and loaded with the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


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
