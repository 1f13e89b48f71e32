"""Torch's generators as they are now, to draw the same once more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Chance:
    """The state of the generators that a network on one device draws from.

    Args:
        device: of the network.
        states: of the CPU's generator and, on a GPU, of that device's.
    """

    device: torch.device
    states: tuple[Tensor, ...]

    @classmethod
    def now(cls, device: torch.device) -> Chance:
        """As they are."""
        own = (torch.cuda.get_rng_state(device),) if device.type == "cuda" else ()
        return cls(device, (torch.get_rng_state(), *own))

    @contextmanager
    def again(self) -> Iterator[None]:
        """Inside, they are as they were; afterwards as before."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.set_rng_state(self.states[0])
            if len(self.states) > 1:
                torch.cuda.set_rng_state(self.states[1], self.device)
            yield
