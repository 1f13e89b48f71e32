"""A program to export: one module from samples to probabilities, and what its outputs must equal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

_PATCH = 4


class Program(ABC):
    """A module to export, with a description of its inputs and outputs, and the predictor that it must equal.

    Args:
        module: Maps a batch of inputs to a tuple of outputs; on the CPU, in evaluation mode.
        transforms: Whether images go in as RGB bytes of any size.
        facts: JSON values that are stored with the file.
        notes: Sentences for the user.
    """

    def __init__(
        self, module: nn.Module, *, transforms: bool, facts: dict[str, Any], notes: tuple[str, ...] = ()
    ) -> None:
        self.module = module.eval().requires_grad_(False)
        self.transforms = transforms
        self.facts = facts
        self.notes = notes

    @property
    @abstractmethod
    def input_name(self) -> str:
        """Name of the input."""

    @property
    @abstractmethod
    def input_shape(self) -> tuple[str | int, ...]:
        """Shape of the input, with names for axes of any length."""

    @property
    @abstractmethod
    def input_type(self) -> str:
        """Type of the input's numbers."""

    @property
    @abstractmethod
    def output_names(self) -> list[str]:
        """Names of the outputs."""

    @property
    @abstractmethod
    def free_axes(self) -> tuple[int, ...]:
        """Axes of the input that may have any length."""

    @property
    @abstractmethod
    def raw_size(self) -> tuple[int, int]:
        """Height and width of raw images that are not resized; (0, 0) for features."""

    @abstractmethod
    def draw_raw(self, count: int, size: tuple[int, int], seed: int) -> NDArray[Any]:
        """Draw raw samples, as the run's predictor takes them."""

    @abstractmethod
    def inputs(self, raw: NDArray[Any]) -> Tensor:
        """Return the module's inputs for raw samples; images must have the size `raw_size` without `transforms`."""

    @abstractmethod
    def predict(self, raw: NDArray[Any]) -> dict[str, NDArray[np.float32]]:
        """Return what the run's predictor gives for raw samples, by name of the output."""


def draw_images(count: int, size: tuple[int, int], seed: int) -> NDArray[np.uint8]:
    """Draw images with coarse patches and fine noise, shape (count, height, width, 3)."""
    rng = np.random.default_rng(seed)
    height, width = size
    coarse = rng.integers(0, 256, (count, -(-height // _PATCH), -(-width // _PATCH), 3))
    fine = rng.integers(-20, 21, (count, height, width, 3))
    patches = coarse.repeat(_PATCH, axis=1).repeat(_PATCH, axis=2)[:, :height, :width]
    images: NDArray[np.uint8] = (patches + fine).clip(0, 255).astype(np.uint8)
    return images
