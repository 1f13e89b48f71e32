"""timm:NAME: a network of timm without its classifier; weights come from its repository at the hub, or from a file."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from torch import nn

from paretoda.core.options import unknown
from paretoda.errors import BackboneError
from paretoda.models.backbones.backbone import IMAGENET_MEAN, IMAGENET_STD, Backbone
from paretoda.models.weights import HUB, find_weights, load_weights


def describe_backbone(name: str) -> Backbone:
    """Describe the backbone of that name; it is the same for a finished run, whose weights are in its own file."""
    timm = _timm(name)
    known = _settings(timm, name)
    mean, std = (known.mean, known.std) if known is not None else (IMAGENET_MEAN, IMAGENET_STD)
    return Backbone(
        build=lambda channels: timm.create_model(name, pretrained=False, num_classes=0, in_chans=channels),
        width=0,
        mean=tuple(mean),
        std=tuple(std),
        photos=True,
        size=None if known is None else int(known.input_size[-1]),
        channels=3,
        facts={"timm": str(timm.__version__)},
        load=partial(_load, name=name),
    )


def full_name(name: str) -> str:
    """Return the name with the tag of its weights, because timm's default tag may change between versions."""
    known = _settings(_timm(name), name)
    return f"{known.architecture}.{known.tag}" if known is not None and known.tag else name


def find_published(name: str) -> str:
    """Return the location of the weights at the hub.

    Raises:
        BackboneError: There are no published weights.
    """
    known = _settings(_timm(name), name)
    if known is None or not known.hf_hub_id:
        raise BackboneError(f"timm has no published weights for {name}; give --backbone-weights FILE or none")
    return f"{HUB}{known.hf_hub_id}" + (f"/{known.hf_hub_filename}" if known.hf_hub_filename else "")


def _load(network: nn.Module, weights: str | None, *, name: str) -> None:
    """Put weights into the network; those of the classifier, which it does not have, are not used.

    Args:
        network: Network that `build` made.
        weights: File, folder or name at the hub; None: the published ones.
        name: Name of the network.
    """
    known = _settings(_timm(name), name)
    classifiers = getattr(known, "classifier", None) or ()
    classifiers = (classifiers,) if isinstance(classifiers, str) else tuple(classifiers)
    load_weights(network, find_weights(weights or find_published(name)), tuple(f"{each}." for each in classifiers))


def _timm(name: str) -> Any:
    try:
        import timm  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise BackboneError(f'timm:{name} needs timm: pip install "paretoda[timm]"') from error
    # Other forms of names make timm search the hub or folders.
    if not re.fullmatch(r"[\w.-]+", name) or not timm.is_model(name):
        raise BackboneError(unknown("network of timm", name, timm.list_models()))
    return timm


def _settings(timm: Any, name: str) -> Any:
    try:
        return timm.get_pretrained_cfg(name)
    except RuntimeError as error:  # an unknown tag
        tags = timm.list_pretrained(f"{name.partition('.')[0]}.*")
        raise BackboneError(unknown("network of timm", name, tags)) from error
