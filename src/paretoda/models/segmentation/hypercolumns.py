"""EfficientNet-Lite0 for pixels: the maps of three of its stages, enlarged to a quarter of the image and mixed by 1x1.

Hariharan et al. (2015) call the numbers above a pixel its hypercolumn. Nothing is dilated, so that the weights from
ImageNet see what they were trained on, and a step costs little more than one of classification. With such weights the
stem and the first two stages, which are dear and know edges and colours, stay as they are; only their BatchNorm's
statistics follow the images.
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
"""Last blocks of the stages whose maps are taken."""
_CHANNELS = (24, 40, 112)
"""Of these maps."""
_BEHIND = (*(f"_blocks.{i}." for i in range(11, 16)), "_conv_head.", "_bn1.", "_fc.")
"""How the names of published tensors begin that stand behind these stages."""
_MOMENTUM = 0.1
"""Of BatchNorm: with the published 0.01 the target's statistics would still be ImageNet's after a hundred steps."""


class Trunk(nn.Module):
    """The stem and first five stages: images to the maps at a quarter, an eighth and a sixteenth of the resolution."""

    def __init__(self) -> None:
        super().__init__()
        whole = EfficientNetLite0()
        self._conv_stem, self._bn0 = whole._conv_stem, whole._bn0
        self._blocks = whole._blocks[: _SIXTEENTH + 1]
        for layer in batch_norms(self):
            layer.momentum = _MOMENTUM

    def first_half(self) -> nn.ModuleList:
        """All layers before the first of the three maps."""
        return nn.ModuleList([self._conv_stem, self._bn0, *self._blocks[: _QUARTER + 1]])

    def forward(self, images: Tensor) -> list[Tensor]:
        """The three maps, of 24, 40 and 112 channels."""
        x: Tensor = relu6(self._bn0(self._conv_stem(images)))
        maps: list[Tensor] = []
        for i, block in enumerate(self._blocks):
            x = block(x)
            if i in (_QUARTER, _EIGHTH, _SIXTEENTH):
                maps.append(x)
        return maps


class HypercolumnBody(nn.Module):
    """Images (n, 3, h, w) to two maps of `channels` channels, both at a quarter of the resolution, rounded up.

    Args:
        channels: Of either map.
    """

    def __init__(self, channels: int = 64) -> None:
        super().__init__()
        self.trunk = Trunk()
        self.lower = _mixing(sum(_CHANNELS[:2]), channels)
        self.last = _mixing(channels + _CHANNELS[2], channels)

    def load(self, path: Path) -> None:
        """Published weights of EfficientNet-Lite0 for the trunk, whose first half learns no more.

        Args:
            path: a local file; what stands behind the trunk's stages goes unused.
        """
        load_weights(self.trunk, path, _BEHIND)
        self.trunk.first_half().requires_grad_(False)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """A mixture of the first two stages' maps, and one of it and the third."""
        fine, *coarse = self.trunk(images)
        eighth, sixteenth = (interpolate(x, fine.shape[-2:], mode="bilinear", align_corners=True) for x in coarse)
        lower = self.lower(torch.cat([fine, eighth], dim=1))
        return lower, self.last(torch.cat([lower, sixteenth], dim=1))


def _mixing(inputs: int, outputs: int) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, 1, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))
