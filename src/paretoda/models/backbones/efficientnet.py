"""EfficientNet-Lite0, 1 and 2 under the names of their published PyTorch weights: 1280 pooled features of an RGB image.

Tan and Le (2019), in the variant without squeeze-and-excitation and with ReLU6 (Liu, 2020). The weights were trained in
TensorFlow, whose "same" padding puts the odd pixel below and to the right: with symmetric padding they lose accuracy.
The larger ones are wider and deeper; the stem, the 1280 features and the number of blocks in the first and the last
stage are not scaled.

Images are RGB, (x - 127) / 128 for x in 0..255: mean 127/255 and standard deviation 128/255 for x in 0..1.
"""

from __future__ import annotations

from math import ceil

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, relu6

from paretoda.models.backbones.backbone import ResidualBlock

MEAN = (127 / 255,) * 3
STD = (128 / 255,) * 3

_STAGES = (  # kernel, stride of the first block, expansion, outputs, blocks
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)
_STEM, FEATURES = 32, 1280
_MULTIPLE = 8
"""Number that scaled widths are multiples of."""


class SamePadConv(nn.Conv2d):
    """Convolution whose output has ceil(size / stride) pixels, with the odd padding pixel at the end."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, inputs, h, w) to (n, outputs, ceil(h/stride), ceil(w/stride))."""
        sides: list[int] = []
        for size, kernel, stride in zip(x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], strict=True):
            total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            sides += [total // 2, total - total // 2]
        return super().forward(pad(x, sides))


def _conv(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> SamePadConv:
    return SamePadConv(inputs, outputs, kernel, stride, groups=groups, bias=False)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class InvertedResidual(ResidualBlock):
    """Widen by 1x1, filter each channel, narrow by 1x1; a shortcut where input and output have one shape."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = inputs * expansion
        self.expands = expansion > 1
        self.shortcut = stride == 1 and inputs == outputs
        if self.expands:
            self._expand_conv = _conv(inputs, width)
            self._bn0 = _norm(width)
        self._depthwise_conv = _conv(width, width, kernel, stride, groups=width)
        self._bn1 = _norm(width)
        self._project_conv = _conv(width, outputs)
        self._bn2 = _norm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, inputs, h, w) to (n, outputs, h/stride, w/stride)."""
        y: Tensor = relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = relu6(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return x + y if self.shortcut else y


def scale_channels(channels: int, factor: float) -> int:
    """Return the multiple of 8 nearest to the scaled number of channels, or the next one if that loses more than 10 %.

    Args:
        channels: Number of channels of EfficientNet-Lite0.
        factor: Factor of the width.

    Examples:
        >>> [scale_channels(channels, 1.1) for channels in (16, 24, 40, 320)]
        [16, 24, 48, 352]
    """
    scaled = channels * factor
    rounded = max(_MULTIPLE, int(scaled + _MULTIPLE / 2) // _MULTIPLE * _MULTIPLE)
    return rounded if rounded >= 0.9 * scaled else rounded + _MULTIPLE


def _blocks(width: float, depth: float) -> nn.ModuleList:
    blocks, inputs = nn.ModuleList(), _STEM
    for stage, (kernel, stride, expansion, channels, repeats) in enumerate(_STAGES):
        outputs = scale_channels(channels, width)
        scaled = repeats if stage in (0, len(_STAGES) - 1) else ceil(depth * repeats)
        for i in range(scaled):
            blocks.append(InvertedResidual(inputs, outputs, kernel, stride if i == 0 else 1, expansion))
            inputs = outputs
    return blocks


class EfficientNetLite(nn.Module):
    """A stem, inverted residuals and a wide 1x1 convolution.

    Args:
        width: Factor of the numbers of channels.
        depth: Factor of the numbers of blocks.
        classes: None for an encoder, which returns the pooled features (n, 1280); K for logits (n, K).
        in_channels: Number of channels of the images; the published weights need 3.
    """

    def __init__(self, width: float, depth: float, *, classes: int | None = None, in_channels: int = 3) -> None:
        super().__init__()
        self._conv_stem = _conv(in_channels, _STEM, 3, 2)
        self._bn0 = _norm(_STEM)
        self._blocks = _blocks(width, depth)
        self._conv_head = _conv(scale_channels(_STAGES[-1][3], width), FEATURES)
        self._bn1 = _norm(FEATURES)
        self._fc = None if classes is None else nn.Linear(FEATURES, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")

    def forward(self, images: Tensor) -> Tensor:
        """Map images (n, in_channels, h, w) to logits (n, classes), or to the features (n, 1280) of an encoder."""
        x: Tensor = relu6(self._bn0(self._conv_stem(images)))
        for block in self._blocks:
            x = block(x)
        features = torch.mean(relu6(self._bn1(self._conv_head(x))), dim=(2, 3))
        return features if self._fc is None else self._fc(features)


def efficientnet_lite0(*, classes: int | None = None, in_channels: int = 3) -> EfficientNetLite:
    """Make EfficientNet-Lite0, for images of 224 pixels."""
    return EfficientNetLite(1.0, 1.0, classes=classes, in_channels=in_channels)


def efficientnet_lite1(*, classes: int | None = None, in_channels: int = 3) -> EfficientNetLite:
    """Make EfficientNet-Lite1, for images of 240 pixels."""
    return EfficientNetLite(1.0, 1.1, classes=classes, in_channels=in_channels)


def efficientnet_lite2(*, classes: int | None = None, in_channels: int = 3) -> EfficientNetLite:
    """Make EfficientNet-Lite2, for images of 260 pixels."""
    return EfficientNetLite(1.1, 1.2, classes=classes, in_channels=in_channels)
