"""Translations: source images given the target's appearance before training; content and labels stay.

Target images are never translated. Results may leave 0..255 and are not clipped: clip them for display only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from paretoda.errors import DataError

_OPPONENT = ((1 / 3, 1 / 3, 1 / 3), (1 / 4, 1 / 4, -1 / 2), (1 / 2, -1 / 2, 0.0))
_FLAT = 1e-3  # a channel that varies less than this has no contrast to scale


class Translation(Protocol):
    """Changes the appearance of source images."""

    def __call__(self, source: Tensor, target: Tensor, generator: torch.Generator) -> Tensor:
        """Return the source images as if they were taken in the target, shape (n, 3, h, w).

        Args:
            source: Raw images, shape (n, 3, h, w), floating point, values 0..255, before any normalisation.
            target: Raw images of the same shape; each source image is adapted to one of them.
            generator: Source of all randomness.
        """
        ...


@dataclass(frozen=True)
class FourierTranslation:
    """FDA (Yang and Soatto, 2020): the amplitudes of low frequencies come from the target, all phases stay.

    Args:
        beta: Half-width of the window of frequencies, as a share of the image's shorter side; 0 changes nothing.

    Raises:
        DataError: The share is out of its range.
    """

    beta: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.beta <= 0.5:
            raise DataError(f"beta of FDA is {self.beta}: choose a share from 0 to 0.5")

    def __call__(self, source: Tensor, target: Tensor, generator: torch.Generator) -> Tensor:
        """Return the translated images, shape (n, 3, h, w)."""
        return fourier_transfer(source, _draw_partners(source, target, generator), self.beta)


@dataclass(frozen=True)
class ReinhardTranslation:
    """Mean and deviation of each opponent colour come from the target (Reinhard et al., 2001, without logarithms)."""

    def __call__(self, source: Tensor, target: Tensor, generator: torch.Generator) -> Tensor:
        """Return the translated images, shape (n, 3, h, w)."""
        return reinhard_transfer(source, _draw_partners(source, target, generator))


@dataclass(frozen=True)
class HistogramTranslation:
    """The histogram of each colour channel comes from the target."""

    def __call__(self, source: Tensor, target: Tensor, generator: torch.Generator) -> Tensor:
        """Return the translated images, shape (n, 3, h, w)."""
        return histogram_transfer(source, _draw_partners(source, target, generator))


TRANSLATIONS: Mapping[str, Callable[..., Translation] | None] = {
    "none": None,
    "fda": FourierTranslation,
    "reinhard": ReinhardTranslation,
    "histogram": HistogramTranslation,
}
"""Name -> constructor of the translation, with its options by keyword; None where images stay as they are."""


def fourier_transfer(source: Tensor, target: Tensor, beta: float) -> Tensor:
    """Source images with the target images' low-frequency amplitudes, pair by pair.

    Args:
        source: Images, shape (n, c, h, w).
        target: Images of the same shape.
        beta: Half-width of the window over the shorter side; below one frequency the source is returned.
    """
    reach = math.floor(beta * min(source.shape[-2:]))
    if reach == 0:
        return source
    image: Tensor = torch.fft.ifft2(mixed_spectrum(source, target, reach)).real
    return image


def mixed_spectrum(source: Tensor, target: Tensor, reach: int) -> Tensor:
    """The source's spectrum with the target's amplitudes at frequencies -reach..reach, complex (n, c, h, w).

    The window is symmetric, so the spectrum is that of a real image. The window of the authors' code has -reach without
    +reach.

    Args:
        source: Images, shape (n, c, h, w).
        target: Images of the same shape.
        reach: Highest frequency of the window, in both directions.
    """
    height, width = source.shape[-2:]
    low = _is_low(height, reach, source.device)[:, None] & _is_low(width, reach, source.device)
    spectrum = torch.fft.fft2(source)
    amplitude = torch.fft.fft2(target).abs()
    return torch.where(low, torch.polar(amplitude, spectrum.angle()), spectrum)


def reinhard_transfer(source: Tensor, target: Tensor) -> Tensor:
    """Source images with mean and deviation of the target images in three opponent colours, pair by pair.

    Args:
        source: Images, shape (n, 3, h, w).
        target: Images of the same shape.
    """
    colours = opponent_colours(source)
    wanted = opponent_colours(target)
    centred = colours - colours.mean(dim=(2, 3), keepdim=True)
    spread = colours.std(dim=(2, 3), keepdim=True)
    ratio = wanted.std(dim=(2, 3), keepdim=True) / spread.clamp(min=_FLAT)
    moved = centred * torch.where(spread > _FLAT, ratio, 1.0) + wanted.mean(dim=(2, 3), keepdim=True)
    return torch.einsum("ij,njhw->nihw", torch.linalg.inv(_axes(source)), moved)


def opponent_colours(images: Tensor) -> Tensor:
    """Light, yellow against blue, and red against green, nearly decorrelated in photographs, shape (n, 3, h, w)."""
    return torch.einsum("ij,njhw->nihw", _axes(images), images)


def histogram_transfer(source: Tensor, target: Tensor) -> Tensor:
    """Source images whose channels have the target images' histograms, pair by pair.

    Pixels of equal value stay equal: they get the mean of the target's values at their ranks.

    Args:
        source: Images, shape (n, c, h, w).
        target: Images of the same shape.
    """
    pairs = zip(source.flatten(0, 1), target.flatten(0, 1), strict=True)
    return torch.stack([_match_histogram(channel, wanted) for channel, wanted in pairs]).view_as(source)


def _match_histogram(channel: Tensor, wanted: Tensor) -> Tensor:
    _, place, counts = torch.unique(channel, return_inverse=True, return_counts=True)
    sums = torch.cat([wanted.new_zeros(1, dtype=torch.float64), wanted.flatten().double().sort().values.cumsum(0)])
    last = counts.cumsum(0)
    means = (sums[last] - sums[last - counts]) / counts
    matched: Tensor = means[place].to(channel.dtype)
    return matched


def _is_low(length: int, reach: int, device: torch.device) -> Tensor:
    frequency = torch.arange(length, device=device)
    return torch.minimum(frequency, length - frequency) <= reach


def _axes(images: Tensor) -> Tensor:
    return torch.tensor(_OPPONENT, dtype=images.dtype, device=images.device)


def _draw_partners(source: Tensor, target: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one of the target images for each source image."""
    if not (source.is_floating_point() and target.is_floating_point()):
        raise TypeError("translations need floating-point images with values 0..255")
    if source.shape[1:] != target.shape[1:]:
        sizes = f"{tuple(source.shape[1:])} and {tuple(target.shape[1:])}"
        raise ValueError(f"source and target images have the shapes {sizes}: bring both to one size")
    return target[torch.randint(len(target), (len(source),), generator=generator).to(target.device)]
