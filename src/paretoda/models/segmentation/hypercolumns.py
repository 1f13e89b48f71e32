"""EfficientNet-Lite0 for pixels: the maps of three of its stages, enlarged to a quarter of the image and mixed by 1x1.

Hariharan et al. (2015) call the numbers above a pixel its hypercolumn. Nothing is dilated, so that the weights from
ImageNet work at the scales that they were trained on, and a step costs little more than one of classification. With
such weights the stem and the first two stages, which are expensive and respond to edges and colours, are frozen; only
the statistics of their BatchNorm follow the images.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, relu6

from paretoda.models.backbones.efficientnet import EfficientNetLite0
from paretoda.models.batchnorm import batch_norms
from paretoda.models.weights import load_weights

_QUARTER, _EIGHTH, _SIXTEENTH = 2, 4, 10
"""Indices of the last blocks of the stages whose maps are used."""
_CHANNELS = (24, 40, 112)
"""Numbers of channels of these maps."""
_BEHIND = (*(f"_blocks.{i}." for i in range(11, 16)), "_conv_head.", "_bn1.", "_fc.")
"""Prefixes of the names of published tensors behind these stages."""
_MOMENTUM = 0.1
"""Momentum of BatchNorm: with the published 0.01 the statistics would still be ImageNet's after a hundred steps."""


class Trunk(nn.Module):
    """Stem and first five stages: images to the maps at a quarter, an eighth and a sixteenth of the resolution."""

    def __init__(self) -> None:
        super().__init__()
        whole = EfficientNetLite0()
        self._conv_stem, self._bn0 = whole._conv_stem, whole._bn0
        self._blocks = whole._blocks[: _SIXTEENTH + 1]
        for layer in batch_norms(self):
            layer.momentum = _MOMENTUM

    def first_half(self) -> nn.ModuleList:
        """Return all layers before the first of the three maps."""
        return nn.ModuleList([self._conv_stem, self._bn0, *self._blocks[: _QUARTER + 1]])

    def forward(self, images: Tensor) -> list[Tensor]:
        """Return the three maps, of 24, 40 and 112 channels."""
        x: Tensor = relu6(self._bn0(self._conv_stem(images)))
        maps: list[Tensor] = []
        for i, block in enumerate(self._blocks):
            x = block(x)
            if i in (_QUARTER, _EIGHTH, _SIXTEENTH):
                maps.append(x)
        return maps


class HypercolumnBody(nn.Module):
    """Body from images (n, 3, h, w) to two maps of `channels` channels at a quarter of the resolution, rounded up.

    Args:
        channels: Number of channels of each map.
    """

    def __init__(self, channels: int = 64) -> None:
        super().__init__()
        self.trunk = Trunk()
        self.lower = _mixing(sum(_CHANNELS[:2]), channels)
        self.last = _mixing(channels + _CHANNELS[2], channels)

    def load(self, path: Path) -> None:
        """Load published weights of EfficientNet-Lite0 into the trunk and freeze its first half.

        Args:
            path: Local file; tensors behind the stages of the trunk are not used.
        """
        load_weights(self.trunk, path, _BEHIND)
        self.trunk.first_half().requires_grad_(False)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return a mixture of the maps of the first two stages, and a mixture of it and the third map."""
        fine, *coarse = self.trunk(images)
        eighth, sixteenth = (interpolate(x, fine.shape[-2:], mode="bilinear", align_corners=True) for x in coarse)
        lower = self.lower(torch.cat([fine, eighth], dim=1))
        return lower, self.last(torch.cat([lower, sixteenth], dim=1))


def _mixing(inputs: int, outputs: int) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, 1, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))
