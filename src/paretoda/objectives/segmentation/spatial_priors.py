"""Where in an image each class lies, counted in the source's label maps (CBST's spatial priors)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.domains import IGNORE


def spatial_priors(labels: Iterable[Tensor], classes: int, size: tuple[int, int], sigma: float) -> Tensor:
    """The frequency of every class at every place, smoothed, with mean 1 for each class.

    Args:
        labels: maps of shape (n, H, W), `IGNORE` where there is none.
        classes: K.
        size: (h, w), the resolution of the features.
        sigma: of the Gaussian that smooths, in pixels of that resolution; 0 for none.

    Returns:
        q, shape (K, h, w); 1 everywhere for a class without a pixel.
    """
    counts = torch.zeros(classes, *size, dtype=torch.float64)
    for maps in labels:
        shares = functional.one_hot(maps.masked_fill(maps == IGNORE, classes).long(), classes + 1)[..., :classes]
        counts += functional.adaptive_avg_pool2d(shares.permute(0, 3, 1, 2).double(), size).sum(0).cpu()
    smooth = _smoothed(counts, sigma) if sigma > 0 else counts
    means = smooth.mean((1, 2), keepdim=True)
    return torch.where(means > 0, smooth / means.clamp(min=torch.finfo(means.dtype).tiny), 1.0).float()


def _smoothed(maps: Tensor, sigma: float) -> Tensor:
    """Maps (K, h, w) behind a Gaussian; what lies outside is like the border."""
    reach = math.ceil(3 * sigma)
    steps = torch.arange(-reach, reach + 1, dtype=maps.dtype)
    kernel = torch.exp(-steps.square() / (2 * sigma**2))
    kernel = kernel / kernel.sum()
    padded = functional.pad(maps.unsqueeze(1), (reach, reach, reach, reach), mode="replicate")
    once = functional.conv2d(padded, kernel.view(1, 1, 1, -1))
    return functional.conv2d(once, kernel.view(1, 1, -1, 1)).squeeze(1)
