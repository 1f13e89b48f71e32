"""Chance as a function of the seed and the step, so that a run that is resumed needs no saved generator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derived(seed: int, *keys: int) -> int:
    """A 63-bit seed that is as good as independent for every combination of the arguments."""
    return int(np.random.SeedSequence([seed, *keys]).generate_state(2, np.uint32).view(np.uint64)[0] >> 1)


@contextmanager
def own_chance(device: torch.device) -> Iterator[None]:
    """Inside, torch's generators may be seeded; afterwards they are as before."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield


def seed_everything(seed: int, *keys: int) -> None:
    """Seed torch's generators (all devices): dropout, initial weights."""
    torch.manual_seed(derived(seed, *keys))
