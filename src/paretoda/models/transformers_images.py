"""What a network of transformers wants to see: size, channels and normalisation, from its preprocessor_config.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from paretoda.models.backbone import BackboneError

_USUAL_SIZE = 224


@dataclass(frozen=True)
class Images:
    """Images as a network was trained on them.

    Args:
        size: side in pixels.
        multiple: sides are multiples of it.
        channels: 1 or 3.
        mean: per channel, of pixels in 0..1.
        std: likewise.
    """

    size: int | None
    multiple: int
    channels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]


def read_images(preprocessor: Mapping[str, Any], config: Mapping[str, Any], name: str) -> Images:
    """Size and normalisation of the preprocessor; without one the configuration's size, 224 at most, and 0.5 for both.

    Args:
        preprocessor: preprocessor_config.json; empty where there is none.
        config: of the network.
        name: of the backbone, for the message.
    """
    channels = config.get("num_channels", 3)
    if channels not in (1, 3):
        raise BackboneError(f"{name} reads images of {channels} channels; pictures have 1 or 3")
    patch = config.get("patch_size")
    multiple = patch if isinstance(patch, int) and patch > 1 else 1
    size = _size(preprocessor) or _of_config(config, multiple)
    # Pixels 0..255 are multiplied by a factor, usually 1/255, before they are normalised: ours are 1/255 of them.
    factor = 255.0 if preprocessor.get("do_rescale") is False else 255 * _number(preprocessor, "rescale_factor", name)
    normal = preprocessor.get("do_normalize") is not False
    mean = _channels(preprocessor.get("image_mean", 0.5) if normal else 0.0, channels, factor, name)
    std = _channels(preprocessor.get("image_std", 0.5) if normal else 1.0, channels, factor, name)
    if min(std) <= 0:
        raise BackboneError(f"the preprocessor of {name} divides by {min(std):g}; it is damaged")
    return Images(size, multiple, channels, mean, std)


def _size(preprocessor: Mapping[str, Any]) -> int | None:
    """Side of what the network sees: that of the crop, where it crops."""
    given = preprocessor.get("crop_size") if preprocessor.get("do_center_crop") else None
    given = preprocessor.get("size") if given is None else given
    if isinstance(given, Mapping):
        given = given.get("height", given.get("shortest_edge"))
    return given if isinstance(given, int) and given > 0 else None


def _of_config(config: Mapping[str, Any], multiple: int) -> int | None:
    size = config.get("image_size")
    if not isinstance(size, int):
        return None
    return max(min(size, _USUAL_SIZE) // multiple * multiple, multiple)


def _number(preprocessor: Mapping[str, Any], key: str, name: str) -> float:
    value = preprocessor.get(key, 1 / 255)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        raise BackboneError(f"the preprocessor of {name} has {key} {value!r}; it is damaged")
    return float(value)


def _channels(value: Any, channels: int, factor: float, name: str) -> tuple[float, ...]:
    values = value if isinstance(value, list) else [value] * channels
    try:
        found = tuple(float(each) / factor for each in values)
    except (TypeError, ValueError) as error:
        raise BackboneError(f"the preprocessor of {name} has {value!r} in place of numbers; it is damaged") from error
    if len(found) != channels or not all(map(isfinite, found)):
        raise BackboneError(f"the preprocessor of {name} has {value!r} for {channels} channels; it is damaged")
    return found
