"""How often each class occurs in label maps, in all and at each place."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor
from torch.nn.functional import interpolate, one_hot

from paretoda.domains import IGNORE

_SIGMA = 70 / 1914
"""Of the priors' smoothing, as a share of the width: 70 pixels of GTA5's 1914."""


def class_shares(labels: Iterable[Tensor], classes: int) -> Tensor:
    """The share of each class among all valid pixels, shape (K,), float64; all 0 where no pixel is valid.

    Args:
        labels: int64 maps, each of shape (b, h, w), `IGNORE` where there is none.
        classes: K.
    """
    counts = torch.zeros(classes, dtype=torch.int64)
    for maps in labels:
        counts += torch.bincount(maps[maps != IGNORE], minlength=classes)
    return counts.double() / counts.sum().clamp(min=1)


def spatial_priors(labels: Iterable[Tensor], classes: int, size: tuple[int, int]) -> Tensor:
    """How likely each class is at each place, over how likely it is anywhere, shape (K, h, w).

    The share of the class among the valid pixels around a place, divided so that a class's map averages 1: the factors
    of CBST's spatial priors (Zou et al., 2018). A class that never occurs has 1 everywhere, and a place without any
    label has 1 for all classes.

    Args:
        labels: int64 maps, each of shape (b, H, W), `IGNORE` where there is none.
        classes: K.
        size: height and width of the result.
    """
    counts = torch.zeros(classes, *size, dtype=torch.float64)
    for maps in labels:
        # One more class takes the ignored pixels, and is dropped.
        at = torch.where(maps == IGNORE, classes, maps)
        found = one_hot(at, classes + 1).sum(dim=0)[..., :classes].permute(2, 0, 1)
        counts += interpolate(found[None].double(), size=size, mode="area")[0]
    sigma = _SIGMA * size[1]
    smooth = torch.from_numpy(gaussian_filter(counts.numpy(), sigma=(0, sigma, sigma), mode="nearest"))
    valid = smooth.sum(dim=0)
    tiny = torch.finfo(torch.float64).tiny
    shares = smooth / valid.clamp(min=tiny)
    average = shares.sum(dim=(1, 2), keepdim=True) / (valid > 0).sum().clamp(min=1)
    return torch.where((average > 0) & (valid > 0), shares / average.clamp(min=tiny), 1.0).float()
