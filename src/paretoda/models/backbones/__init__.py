"""Backbones by name: how each is built, which images it reads, and the normalisation that its weights expect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from paretoda.core.options import unknown
from paretoda.errors import BackboneError
from paretoda.models.backbones import timm as from_timm
from paretoda.models.backbones import transformers as from_transformers
from paretoda.models.backbones import user_module as own_module
from paretoda.models.backbones.backbone import IMAGENET_MEAN, IMAGENET_STD, Backbone, ExternalBackbone, measure_width
from paretoda.models.backbones.efficientnet import (
    FEATURES,
    MEAN,
    STD,
    efficientnet_lite0,
    efficientnet_lite1,
    efficientnet_lite2,
)
from paretoda.models.backbones.resnet import resnet18, resnet34, resnet50, resnet101, resnet152
from paretoda.models.backbones.small import SMALLEST, cnn, cnn_width, lenet
from paretoda.models.weights import DEFAULT, RANDOM, load_weights, resolve_weights

EXTERNAL_PREFIXES = {
    "hf:": "hf:facebook/dinov2-small",
    "timm:": "timm:convnext_tiny",
    "module:": "module:package.factory",
}
"""Prefix of the names of external networks -> an example."""


def _resnet(build: Callable[..., nn.Module], width: int) -> Backbone:
    return Backbone(lambda channels: build(in_channels=channels), width, 32, IMAGENET_MEAN, IMAGENET_STD, True)


def _efficientnet(build: Callable[..., nn.Module], size: int | None = None) -> Backbone:
    return Backbone(lambda channels: build(in_channels=channels), FEATURES, 32, MEAN, STD, True, size)


BACKBONES: dict[str, Backbone] = {
    "lenet": Backbone(lenet, 500, SMALLEST),
    "cnn": Backbone(cnn, cnn_width(), 8),
    "resnet18": _resnet(resnet18, 512),
    "resnet34": _resnet(resnet34, 512),
    "resnet50": _resnet(resnet50, 2048),
    "resnet101": _resnet(resnet101, 2048),
    "resnet152": _resnet(resnet152, 2048),
    "efficientnet-lite0": _efficientnet(efficientnet_lite0),
    "efficientnet-lite1": _efficientnet(efficientnet_lite1, 240),
    "efficientnet-lite2": _efficientnet(efficientnet_lite2, 260),
}
"""Name -> backbone; "mlp", which reads feature vectors, needs none of this and is not included."""

NAMES = ("mlp", *BACKBONES)
"""All names of backbones in this package."""


def is_external(name: str) -> bool:
    """Whether the name is of a network from outside this package.

    Examples:
        >>> is_external("timm:convnext_tiny"), is_external("resnet50")
        (True, False)
    """
    return name.startswith(tuple(EXTERNAL_PREFIXES))


def find_backbone(name: str, facts: Mapping[str, Any] | None = None) -> Backbone:
    """Return the description of the backbone of that name.

    Args:
        name: Key of `BACKBONES`, or a name with a prefix of `EXTERNAL_PREFIXES`.
        facts: Facts of a finished run from which its network is rebuilt; None: it is looked up by its name.

    Raises:
        BackboneError: The name is unknown, or the backbone cannot be found.

    Examples:
        >>> find_backbone("resnet50").width
        2048
    """
    kind, _, rest = name.partition(":")
    if name in BACKBONES:
        return BACKBONES[name]
    if not is_external(name) or not rest:
        raise BackboneError(unknown("backbone", name, [*NAMES, *EXTERNAL_PREFIXES.values()]))
    if kind == "module":
        return own_module.describe_backbone(rest)
    if kind == "timm":
        return from_timm.describe_backbone(rest)
    return (
        from_transformers.describe_backbone(rest) if facts is None else from_transformers.rebuild_backbone(facts, name)
    )


def default_backbone(input_shape: tuple[int, ...]) -> str:
    """Name of the default backbone: an MLP for features, the small CNN below 64 pixels, ResNet-50 for photographs.

    Args:
        input_shape: Shape of one sample: (d,), or (channels, h, w).

    Examples:
        >>> default_backbone((1280,)), default_backbone((3, 32, 32)), default_backbone((3, 224, 224))
        ('mlp', 'cnn', 'resnet50')
    """
    if len(input_shape) != 3:
        return "mlp"
    return "cnn" if min(input_shape[1:]) < 64 else "resnet50"


def check_backbone(name: str, input_shape: tuple[int, ...], facts: Mapping[str, Any] | None = None) -> None:
    """Raise BackboneError unless the name is known and the backbone can read such samples."""
    if name == "mlp":
        return
    if name not in BACKBONES and not is_external(name):
        raise BackboneError(unknown("backbone", name, [*NAMES, *EXTERNAL_PREFIXES.values()]))
    if len(input_shape) != 3:
        raise BackboneError(f"{name} reads images (channels, h, w), the samples have shape {input_shape}; take 'mlp'")
    if facts is not None:
        return  # whether it can read them is tried when it is built
    backbone, size = find_backbone(name), f"{input_shape[2]}x{input_shape[1]}"
    if min(input_shape[1:]) < backbone.smallest:
        smallest = backbone.smallest
        raise BackboneError(
            f"{name} reads images of at least {smallest} pixels, these have {size}; resize or take 'cnn'"
        )
    if any(side % backbone.multiple for side in input_shape[1:]):
        near = max(round(input_shape[1] / backbone.multiple), 1) * backbone.multiple
        raise BackboneError(
            f"{name} reads images whose sides are multiples of {backbone.multiple} pixels, not {size}; "
            f"take --image-size {near}"
        )


def describe_external(name: str, input_shape: tuple[int, ...]) -> dict[str, Any] | None:
    """Return the facts that rebuild an external network, with its measured width; None for those of `BACKBONES`.

    Args:
        name: Name of the backbone.
        input_shape: Shape of one sample, (channels, h, w).

    Raises:
        BackboneError: The name is unknown, or the backbone cannot read such samples.
    """
    if not is_external(name):
        return None
    check_backbone(name, input_shape)
    backbone = find_backbone(name)
    with torch.random.fork_rng(devices=[]):
        return {"width": _measure_width(name, backbone, input_shape), **(backbone.facts or {})}


def _measure_width(name: str, backbone: Backbone, input_shape: tuple[int, ...]) -> int:
    """Measure the width without allocating memory, except for the user's own network, which may not allow that."""
    with torch.device("cpu" if name.startswith(own_module.MODULE) else "meta"):
        return measure_width(name, backbone.build(input_shape[0]), input_shape)


def feature_width(name: str, facts: Mapping[str, Any] | None = None) -> int:
    """Width of the backbone's features; that of an external network is one of its facts.

    Raises:
        BackboneError: The facts have no valid width.
    """
    if name in BACKBONES:
        return BACKBONES[name].width
    width = (facts or {}).get("width")
    if type(width) is not int or not 0 < width < 2**20:
        raise BackboneError(f"{name} has no width of features written down; the model is damaged")
    return width


def make_backbone(
    name: str,
    input_shape: tuple[int, ...],
    weights: str | Path | None = None,
    facts: Mapping[str, Any] | None = None,
) -> nn.Module:
    """Build a network from images (n, *input_shape) to features (n, width), with random or stored weights.

    Args:
        name: Key of `BACKBONES`, or a name with a prefix of `EXTERNAL_PREFIXES`.
        input_shape: Shape of one sample, (channels, h, w).
        weights: File, folder, name at the hub, or "default"; None and "none" for random weights.
        facts: Facts of `describe_external`, or of a finished run; None: they are determined here.

    Returns:
        The network.

    Raises:
        BackboneError: The name is unknown, or the backbone cannot read such samples.
        WeightsError: The weights are those of another network.

    Examples:
        >>> make_backbone("cnn", (3, 32, 32))(torch.zeros(1, 3, 32, 32)).shape
        torch.Size([1, 512])
    """
    check_backbone(name, input_shape, facts)
    if name == "mlp":
        raise BackboneError("'mlp' is trained with the rest of the model, it is no backbone of its own")
    if is_external(name):
        return _make_external(name, input_shape, weights, facts)
    network = BACKBONES[name].build(input_shape[0])
    if weights is not None and weights != RANDOM:
        load_weights(network, resolve_weights(name, weights))
    return network


def _make_external(
    name: str, input_shape: tuple[int, ...], weights: str | Path | None, facts: Mapping[str, Any] | None
) -> ExternalBackbone:
    stored = facts is not None
    facts = describe_external(name, input_shape) if facts is None else facts
    width, backbone = feature_width(name, facts), find_backbone(name, facts)
    network = backbone.build(input_shape[0])
    if stored and torch.get_default_device().type != "meta":  # on "meta" the shapes are compared with the file's
        found = _measure_width(name, backbone, input_shape)
        if found != width:
            raise BackboneError(f"{name} gives {found} features instead of {width}; the model is damaged")
    _load_external(name, network, weights)
    return ExternalBackbone(network, facts or {})


def _load_external(name: str, network: nn.Module, weights: str | Path | None) -> None:
    if weights is None or weights == RANDOM:
        return
    load = find_backbone(name).load
    if load is not None:
        load(network, None if weights == DEFAULT else str(weights))
    elif weights == DEFAULT:
        raise BackboneError(f"{name} has no published weights; leave out --backbone-weights, or give a file")
    else:
        load_weights(network, resolve_weights(name, weights))
