"""Random crops, flips and colours of a whole batch at once, all drawn from the generator that is given."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from paretoda.data.chance import per_sample

_RATIO = 4 / 3


def random_crops(
    images: Tensor, size: int, scale: tuple[float, float], flip: bool, generator: torch.Generator
) -> Tensor:
    """From each image a rectangle of a random share of its area, mirrored or not, as a square of the given size.

    Args:
        images: shape (n, c, s, s), values 0..1.
        size: side of the result.
        scale: least and largest share of the area; the sides' ratio lies between 3/4 and 4/3.
        flip: mirror half of the images.
        generator: the only source of chance.
    """
    n = len(images)
    chance = per_sample((5, n), 1, generator)
    area = scale[0] + (scale[1] - scale[0]) * chance[0]
    ratio = torch.exp((2 * chance[1] - 1) * math.log(_RATIO))
    width = (area * ratio).sqrt().clamp(max=1)
    height = (area / ratio).sqrt().clamp(max=1)
    mirror = torch.where(chance[4] < 0.5, -1.0, 1.0) if flip else torch.ones(n)
    theta = torch.zeros((n, 2, 3))
    theta[:, 0, 0] = width * mirror
    theta[:, 1, 1] = height
    theta[:, 0, 2] = (2 * chance[2] - 1) * (1 - width)
    theta[:, 1, 2] = (2 * chance[3] - 1) * (1 - height)
    grid = affine_grid(theta, [n, images.shape[1], size, size], align_corners=False)
    return grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)


def random_mirrors(images: Tensor, generator: torch.Generator) -> Tensor:
    """Half of the images, drawn at random, mirrored left to right.

    Args:
        images: shape (n, c, h, w).
        generator: the only source of chance.
    """
    mirrored = per_sample((len(images),), 0, generator) < 0.5
    return torch.where(mirrored.view(-1, 1, 1, 1), images.flip(-1), images)


def colour_jitter(images: Tensor, strength: float, generator: torch.Generator) -> Tensor:
    """Brightness, contrast and saturation of each image, times factors from 1 - strength to 1 + strength.

    Args:
        images: shape (n, c, h, w), values 0..1.
        strength: 0 changes nothing.
        generator: the only source of chance.
    """
    factors = 1 + strength * (2 * per_sample((3, len(images), 1, 1, 1), 1, generator) - 1)
    images = (images * factors[0]).clamp_(0, 1)
    images = blend(images, grey(images).mean(dim=(1, 2, 3), keepdim=True), factors[1])
    return blend(images, grey(images), factors[2])


def grey(images: Tensor) -> Tensor:
    """Luminance, shape (n, 1, h, w)."""
    if images.shape[1] == 1:
        return images
    return 0.299 * images[:, :1] + 0.587 * images[:, 1:2] + 0.114 * images[:, 2:]


def blend(images: Tensor, towards: Tensor, factor: Tensor) -> Tensor:
    """`towards` at factor 0, the images at 1, beyond them above 1; values stay in 0..1."""
    return torch.lerp(towards, images, factor).clamp_(0, 1)
