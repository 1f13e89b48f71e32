"""Torch's generators as a function of the seed and the step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from paretoda.core.chance import derived_seed


@contextmanager
def own_chance(device: torch.device) -> Iterator[None]:
    """Inside, torch's generators may be seeded; afterwards they are as before."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield


def seed_everything(seed: int, *key: int | str) -> None:
    """Seed torch's generators (all devices): dropout, initial weights."""
    torch.manual_seed(derived_seed(seed, *key))
