"""Body of DeepLab-v2: a ResNet whose last two stages use dilation instead of strides, output stride 8.

Chen et al. (2018), in the form of the caffe weights that the adaptation papers start from: the stride of a bottleneck
is on its first 1x1 convolution, and the pooling rounds up. Parameters have torchvision's names. torchvision's weights
fit too, but were trained with the stride on the 3x3 convolution, which differs in the first block of layer2.
"""

from __future__ import annotations

import logging
from pathlib import Path

from torch import Tensor, nn

from paretoda.models.backbones.backbone import ResidualBlock
from paretoda.models.weights import check_fit, read_tensors

_LOG = logging.getLogger(__name__)
_DILATIONS = (1, 1, 2, 4)
_EXPANSION = 4
_PREFIXES = ("module.", "Scale.")
_CLASSIFIERS = ("fc.", "layer5.", "layer6.")
_WIDTHS = (64, 128, 256, 512)


class DilatedBottleneck(ResidualBlock):
    """1x1, dilated 3x3 and 1x1 convolutions and a shortcut: (n, inputs, h, w) to (n, 4 width, h/stride, w/stride).

    Args:
        inputs: Number of input channels.
        width: Number of channels of the 3x3 convolution.
        stride: Stride of the first 1x1 convolution and of the shortcut.
        dilation: Dilation of the 3x3 convolution.
        project: Use a 1x1 convolution and BatchNorm on the shortcut, as in the first block of every stage.
    """

    def __init__(self, inputs: int, width: int, stride: int, dilation: int, project: bool) -> None:
        super().__init__()
        outputs = _EXPANSION * width
        self.conv1 = nn.Conv2d(inputs, width, 1, stride, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=dilation, dilation=dilation, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = _projection(inputs, outputs, stride) if project else None

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(residual + shortcut)."""
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.bn1(self.conv1(x)).relu_()
        x = self.bn2(self.conv2(x)).relu_()
        x = self.bn3(self.conv3(x))
        return x.add_(shortcut).relu_()


def _projection(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


def _stage(inputs: int, stage: int, depth: int, stride: int) -> nn.Sequential:
    """Build a stage; all blocks, including the first one, have its dilation."""
    width, dilation = _WIDTHS[stage], _DILATIONS[stage]
    rest = (DilatedBottleneck(_EXPANSION * width, width, 1, dilation, False) for _ in range(depth - 1))
    return nn.Sequential(DilatedBottleneck(inputs, width, stride, dilation, True), *rest)


class DeepLabBody(nn.Module):
    """Network from images (n, 3, h, w) to maps of 1024 and of 2048 channels, both at about an eighth of the resolution.

    Args:
        depths: Number of blocks in each of the four stages.
    """

    widths = (1024, 2048)
    """Numbers of channels of the last two stages."""

    def __init__(self, depths: tuple[int, int, int, int]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1, ceil_mode=True)
        self.layer1 = _stage(64, 0, depths[0], stride=1)
        self.layer2 = _stage(256, 1, depths[1], stride=2)
        self.layer3 = _stage(512, 2, depths[2], stride=1)
        self.layer4 = _stage(1024, 3, depths[3], stride=1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return the maps of layer3 (n, 1024, h', w') and layer4 (n, 2048, h', w')."""
        x = self.maxpool(self.bn1(self.conv1(images)).relu_())
        lower = self.layer3(self.layer2(self.layer1(x)))
        return lower, self.layer4(lower)


def deeplab_resnet50() -> DeepLabBody:
    """Build the body with the depths of ResNet-50."""
    return DeepLabBody((3, 4, 6, 3))


def deeplab_resnet101() -> DeepLabBody:
    """Build the body with the depths of ResNet-101, that of the papers."""
    return DeepLabBody((3, 4, 23, 3))


def load_body(body: nn.Module, path: str | Path) -> tuple[str, ...]:
    """Load the tensors of a file into the body.

    Names may be torchvision's or begin with "Scale." (caffe's weights, as AdaSegNet publishes them) or "module.". The
    classifiers of the file (fc.*, layer5.*, layer6.*) are not used, and a log message says so; all other tensors must
    fit, or nothing changes.

    Args:
        body: Body of DeepLab, or any network without such classifiers.
        path: Local .pth, .pt, .bin or .safetensors file.

    Returns:
        The keys that were not used.

    Raises:
        WeightsError: The tensors are not those of the body.
    """
    path = Path(path)
    state = {_plain(key): tensor for key, tensor in read_tensors(path).items()}
    unused = tuple(key for key in state if key.startswith(_CLASSIFIERS))
    state = {key: tensor for key, tensor in state.items() if key not in unused}
    check_fit(state, body.state_dict(), path)
    # A plain dictionary has no version, so that BatchNorm accepts old files without num_batches_tracked.
    body.load_state_dict(state)
    if unused:
        _LOG.info("%s: %s not used, the body has no classifier", path.name, ", ".join(unused))
    return unused


def _plain(key: str) -> str:
    for prefix in _PREFIXES:
        key = key.removeprefix(prefix)
    return key
