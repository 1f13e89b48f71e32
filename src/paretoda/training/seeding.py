"""Torch's random generators as a function of the seed and the step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from paretoda.core.seeds import derive_seed


@contextmanager
def isolated_rng(device: torch.device) -> Iterator[None]:
    """Inside, torch's generators may be seeded and used; afterwards their states are restored."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield


@contextmanager
def deterministic_algorithms(wanted: bool) -> Iterator[None]:
    """Inside, and where wanted, torch uses only algorithms that give the same bits each time.

    Torch raises an error where it has no such algorithm.
    """
    if not wanted:
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it when CUDA is initialised
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    flags = torch.backends.cudnn
    try:
        torch.use_deterministic_algorithms(True)
        with flags.flags(enabled=flags.enabled, benchmark=False, deterministic=True, allow_tf32=flags.allow_tf32):
            yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def seed_everything(seed: int, *key: int | str) -> None:
    """Seed torch's generators on all devices, which draw dropout and initial weights."""
    number = derive_seed(seed, *key)
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        torch.manual_seed(number)
    else:
        torch.default_generator.manual_seed(number)  # the same without notes for devices that do not exist
