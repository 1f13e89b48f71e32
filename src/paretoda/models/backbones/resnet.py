"""ResNet-18 to -152 under torchvision's parameter names, so that its published weights load unchanged.

He et al. (2016), in the form that every published file of weights uses: the 3x3 convolution of a bottleneck has the
stride ("v1.5"). Without classes the network is an encoder and returns the pooled features.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from paretoda.models.backbones.backbone import ResidualBlock

RESNETS = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")
"""Names of the functions below."""
_WIDTHS = (64, 128, 256, 512)


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    """A projection where the shapes of a block's input and output differ; None is the identity."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(_conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


class BasicBlock(ResidualBlock):
    """Two 3x3 convolutions and a shortcut: (n, inputs, h, w) to (n, width, h/stride, w/stride)."""

    expansion: ClassVar[int] = 1

    def __init__(self, inputs: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = _conv(inputs, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _conv(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _shortcut(inputs, width, stride)

    @property
    def last_norm(self) -> nn.BatchNorm2d:
        """The layer whose zero weight makes the block an identity."""
        return self.bn2

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(residual + shortcut)."""
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.bn1(self.conv1(x)).relu_()
        x = self.bn2(self.conv2(x))
        return x.add_(shortcut).relu_()


class Bottleneck(ResidualBlock):
    """1x1, 3x3, 1x1 convolutions and a shortcut: (n, inputs, h, w) to (n, 4 width, h/stride, w/stride)."""

    expansion: ClassVar[int] = 4

    def __init__(self, inputs: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = _conv(inputs, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _conv(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = _conv(width, self.expansion * width, 1)
        self.bn3 = nn.BatchNorm2d(self.expansion * width)
        self.downsample = _shortcut(inputs, self.expansion * width, stride)

    @property
    def last_norm(self) -> nn.BatchNorm2d:
        """The layer whose zero weight makes the block an identity."""
        return self.bn3

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(residual + shortcut)."""
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.bn1(self.conv1(x)).relu_()
        x = self.bn2(self.conv2(x)).relu_()
        x = self.bn3(self.conv3(x))
        return x.add_(shortcut).relu_()


def _stage(block: type[BasicBlock | Bottleneck], inputs: int, width: int, depth: int, stride: int) -> nn.Sequential:
    """The first block changes the resolution and the width, the others keep them."""
    rest = (block(width * block.expansion, width) for _ in range(depth - 1))
    return nn.Sequential(block(inputs, width, stride), *rest)


class ResNet(nn.Module):
    """A stem and four stages of residual blocks.

    Args:
        block: Class of the blocks.
        depths: Number of blocks in each of the four stages.
        classes: None for an encoder, which returns the pooled features (n, width); K for logits (n, K).
        in_channels: Number of channels of the images.
        zero_init_residual: Whether every block starts as an identity.
    """

    def __init__(
        self,
        block: type[BasicBlock | Bottleneck],
        depths: tuple[int, int, int, int],
        classes: int | None = None,
        in_channels: int = 3,
        zero_init_residual: bool = False,
    ) -> None:
        super().__init__()
        self.conv1 = _conv(in_channels, _WIDTHS[0], 7, stride=2)
        self.bn1 = nn.BatchNorm2d(_WIDTHS[0])
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = _stage(block, _WIDTHS[0], _WIDTHS[0], depths[0], stride=1)
        self.layer2 = _stage(block, _WIDTHS[0] * block.expansion, _WIDTHS[1], depths[1], stride=2)
        self.layer3 = _stage(block, _WIDTHS[1] * block.expansion, _WIDTHS[2], depths[2], stride=2)
        self.layer4 = _stage(block, _WIDTHS[2] * block.expansion, _WIDTHS[3], depths[3], stride=2)
        self.width = _WIDTHS[3] * block.expansion
        self.fc = None if classes is None else nn.Linear(self.width, classes)
        self._initialise(zero_init_residual)

    def _initialise(self, zero_init_residual: bool) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif zero_init_residual and isinstance(module, BasicBlock | Bottleneck):
                nn.init.zeros_(module.last_norm.weight)

    def features(self, images: Tensor) -> Tensor:
        """Map images (n, in_channels, h, w) to pooled features (n, width)."""
        x: Tensor = self.maxpool(self.bn1(self.conv1(images)).relu_())
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return x.mean(dim=(2, 3))

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits (n, classes), or the features (n, width) of an encoder."""
        features = self.features(images)
        if self.fc is None:
            return features
        logits: Tensor = self.fc(features)
        return logits


def resnet18(*, classes: int | None = None, in_channels: int = 3, zero_init_residual: bool = False) -> ResNet:
    """ResNet-18: 512 features."""
    return ResNet(BasicBlock, (2, 2, 2, 2), classes, in_channels, zero_init_residual)


def resnet34(*, classes: int | None = None, in_channels: int = 3, zero_init_residual: bool = False) -> ResNet:
    """ResNet-34: 512 features."""
    return ResNet(BasicBlock, (3, 4, 6, 3), classes, in_channels, zero_init_residual)


def resnet50(*, classes: int | None = None, in_channels: int = 3, zero_init_residual: bool = False) -> ResNet:
    """ResNet-50: 2048 features."""
    return ResNet(Bottleneck, (3, 4, 6, 3), classes, in_channels, zero_init_residual)


def resnet101(*, classes: int | None = None, in_channels: int = 3, zero_init_residual: bool = False) -> ResNet:
    """ResNet-101: 2048 features."""
    return ResNet(Bottleneck, (3, 4, 23, 3), classes, in_channels, zero_init_residual)


def resnet152(*, classes: int | None = None, in_channels: int = 3, zero_init_residual: bool = False) -> ResNet:
    """ResNet-152: 2048 features."""
    return ResNet(Bottleneck, (3, 8, 36, 3), classes, in_channels, zero_init_residual)
