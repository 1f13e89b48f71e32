"""EfficientNet-Lite0 under the names of its published PyTorch weights: 1280 pooled features of an RGB image.

Tan and Le (2019), in the variant without squeeze-and-excitation and with ReLU6 (Liu, 2020). The weights were trained in
TensorFlow, whose "same" padding puts the odd pixel below and to the right: with symmetric padding they lose accuracy.

Images are RGB, (x - 127) / 128 for x in 0..255: mean 127/255 and standard deviation 128/255 for x in 0..1.
"""

from __future__ import annotations

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
_STEM, _HEAD = 32, 1280


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


def _blocks() -> nn.ModuleList:
    blocks, inputs = nn.ModuleList(), _STEM
    for kernel, stride, expansion, outputs, repeats in _STAGES:
        for i in range(repeats):
            blocks.append(InvertedResidual(inputs, outputs, kernel, stride if i == 0 else 1, expansion))
            inputs = outputs
    return blocks


class EfficientNetLite0(nn.Module):
    """A stem, sixteen inverted residuals and a wide 1x1 convolution.

    Args:
        classes: None for an encoder, which returns the pooled features (n, 1280); K for logits (n, K).
        in_channels: Number of channels of the images; the published weights need 3.
    """

    width = _HEAD

    def __init__(self, *, classes: int | None = None, in_channels: int = 3) -> None:
        super().__init__()
        self._conv_stem = _conv(in_channels, _STEM, 3, 2)
        self._bn0 = _norm(_STEM)
        self._blocks = _blocks()
        self._conv_head = _conv(_STAGES[-1][3], _HEAD)
        self._bn1 = _norm(_HEAD)
        self._fc = None if classes is None else nn.Linear(_HEAD, classes)
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
