"""What happens to samples before the network, as layers of an exported file."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from paretoda.data.scaling import FeatureTransform
from paretoda.data.segmentation import SceneTransform
from paretoda.data.transforms import ImageTransform
from paretoda.job.export.resampling import columns_may_come_first, resized

_GREY = (19595.0, 38470.0, 7471.0)
"""Pillow's weights of red, green and blue in grey, in units of 2^-16."""


class ZScores(nn.Module):
    """The `FeatureTransform` as a layer.

    Args:
        transform: of the run.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, transform: FeatureTransform) -> None:
        super().__init__()
        self.register_buffer("mean", transform.mean.clone())
        self.register_buffer("std", transform.std.clone())

    def forward(self, features: Tensor) -> Tensor:
        """Shape (n, d) to (n, d)."""
        return (features - self.mean) / self.std


class Pixels(nn.Module):
    """RGB bytes (n, h, w, 3) of any size to the images that the network reads, as the `ImageTransform` makes them.

    Args:
        transform: of the run.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, transform: ImageTransform) -> None:
        super().__init__()
        self.transform, self.tall = transform, columns_may_come_first()
        for name, values in (("mean", transform.mean), ("std", transform.std)):
            self.register_buffer(name, torch.tensor(values).view(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Shape (n, channels, size, size)."""
        pixels = images.permute(0, 3, 1, 2).double()
        if self.transform.channels == 1:
            weights = torch.tensor(_GREY, dtype=torch.float64).view(3, 1, 1)
            pixels = (((pixels * weights).sum(1, keepdim=True) + 0x8000) / 0x10000).floor()
        side = self.transform.resized
        pixels = resized(pixels, (side, side), "bilinear", tall=self.tall)
        start, end = (side - self.transform.size) // 2, (side + self.transform.size) // 2
        pixels = pixels[:, :, start:end, start:end]
        return (pixels.float() / 255 - self.mean) / self.std


class ScenePixels(nn.Module):
    """RGB bytes (n, h, w, 3) of any size to the images that a segmenter reads.

    Args:
        transform: of the run.
    """

    def __init__(self, transform: SceneTransform) -> None:
        super().__init__()
        self.transform, self.tall = transform, columns_may_come_first()

    def forward(self, images: Tensor) -> Tensor:
        """Shape (n, 3, height, width)."""
        pixels = images.permute(0, 3, 1, 2)
        return self.transform.normalise(resized(pixels, self.transform.size, "bicubic", tall=self.tall).float())
