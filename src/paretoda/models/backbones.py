"""Backbones by name: how each is built, what it reads, and the normalisation that its weights expect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from paretoda.core.names import unknown
from paretoda.models.cnn import cnn, cnn_width
from paretoda.models.efficientnet import MEAN, STD, EfficientNetLite0
from paretoda.models.lenet import SMALLEST, lenet
from paretoda.models.resnet import resnet18, resnet34, resnet50, resnet101, resnet152
from paretoda.models.weights import load_weights

_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Backbone:
    """One line of the table.

    Args:
        build: the number of channels -> a network from images to features (n, width).
        width: of the features.
        smallest: side of the smallest image that it reads.
        mean: of each channel, for images in 0..1; one number stands for all channels.
        std: likewise.
        photos: made for photographs of about 224 pixels, usually with weights from ImageNet.
    """

    build: Callable[[int], nn.Module]
    width: int
    smallest: int
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    photos: bool = False


def _resnet(build: Callable[..., nn.Module], width: int) -> Backbone:
    return Backbone(lambda channels: build(in_channels=channels), width, 32, _IMAGENET_MEAN, _IMAGENET_STD, True)


BACKBONES: dict[str, Backbone] = {
    "lenet": Backbone(lenet, 500, SMALLEST),
    "cnn": Backbone(cnn, cnn_width(), 8),
    "resnet18": _resnet(resnet18, 512),
    "resnet34": _resnet(resnet34, 512),
    "resnet50": _resnet(resnet50, 2048),
    "resnet101": _resnet(resnet101, 2048),
    "resnet152": _resnet(resnet152, 2048),
    "efficientnet-lite0": Backbone(
        lambda channels: EfficientNetLite0(in_channels=channels), EfficientNetLite0.width, 32, MEAN, STD, True
    ),
}
"""Name -> backbone; "mlp", which reads features, needs none of this and is not among them."""

NAMES = ("mlp", *BACKBONES)
"""All names that a model can be made of."""


def default_backbone(input_shape: tuple[int, ...]) -> str:
    """Features get an MLP, images below 64 pixels the small CNN, photographs ResNet-50.

    Args:
        input_shape: of one sample: (d,), or (channels, h, w).
    """
    if len(input_shape) != 3:
        return "mlp"
    return "cnn" if min(input_shape[1:]) < 64 else "resnet50"


def check_backbone(name: str, input_shape: tuple[int, ...]) -> None:
    """The name is known and the backbone can read such samples, or a ValueError says what to do."""
    if name not in NAMES:
        raise ValueError(unknown("backbone", name, NAMES))
    if name == "mlp":
        return
    if len(input_shape) != 3:
        raise ValueError(f"{name} reads images (channels, h, w), the samples have shape {input_shape}; take 'mlp'")
    if min(input_shape[1:]) < (smallest := BACKBONES[name].smallest):
        size = f"{input_shape[2]}x{input_shape[1]}"
        raise ValueError(f"{name} reads images of at least {smallest} pixels, these have {size}; resize or take 'cnn'")


def make_backbone(name: str, input_shape: tuple[int, ...], weights: str | Path | None = None) -> nn.Module:
    """Images (n, *input_shape) to features (n, BACKBONES[name].width), with random or stored weights.

    Args:
        name: a key of `BACKBONES`.
        input_shape: of one sample, (channels, h, w).
        weights: a local .safetensors or .pth file; None for random weights.
    """
    check_backbone(name, input_shape)
    if name == "mlp":
        raise ValueError("'mlp' is trained with the rest of the model, it is no backbone of its own")
    network = BACKBONES[name].build(input_shape[0])
    if weights is not None:
        load_weights(network, weights)
    return network
