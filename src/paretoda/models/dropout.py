"""Dropout of a part of a batch, as it would have been in the whole batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

_SPATIAL = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
KINDS = (nn.Dropout, *_SPATIAL)


@contextmanager
def drawn_for_all(module: nn.Module, total: int, rows: Tensor) -> Iterator[None]:
    """Inside, dropout layers see some rows of a batch, but draw for all of it and take the draws of these rows.

    Begun from the same state of chance, every part then drops what the whole batch would have dropped there, and
    leaves chance as the whole batch would have left it.

    Args:
        module: whose layers; those in evaluation mode draw nothing.
        total: rows of the whole batch.
        rows: positions of the part in it.
    """
    layers = [layer for layer in module.modules() if isinstance(layer, KINDS) and layer.training and layer.p > 0]
    try:
        for layer in layers:
            layer.forward = partial(_dropped, layer, total, rows)  # type: ignore[method-assign]
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)


def _dropped(layer: nn.Module, total: int, rows: Tensor, part: Tensor) -> Tensor:
    if part.shape[0] != len(rows):  # not rows of the batch: nothing is known of the others
        own: Tensor = type(layer).forward(layer, part)
        return own
    inner = part.shape[1:]
    if isinstance(layer, _SPATIAL):  # whole channels: one draw for each
        inner = torch.Size([inner[0], *(1 for _ in inner[1:])])
    whole = torch.ones(total, *inner, dtype=part.dtype, device=part.device)
    drawn: Tensor = type(layer).forward(layer, whole)
    return part * drawn[rows]
