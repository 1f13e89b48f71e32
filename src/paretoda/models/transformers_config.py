"""A configuration of transformers as plain values: what names code, files or other networks is left out or refused."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

from paretoda.models.backbone import BackboneError

_LARGEST, _LONGEST = 2**16, 256
"""Number, and list of numbers, in a configuration of a network for images."""
_INSIDE = ("backbone", "backbone_config")
_UNUSED = frozenset(
    {
        *("transformers_version", "architectures", "output_hidden_states", "output_attentions", "return_dict"),
        *("dtype", "torch_dtype", "id2label", "label2id", "num_labels", "problem_type", "quantization_config"),
        *("chunk_size_feed_forward", "is_encoder_decoder", "attn_implementation", "auto_map", "out_features"),
        *("out_indices", "stage_names"),
    }
)
"""What decides nothing of the network's shape, or lets others decide what is run."""
_READ = 2**20


def read_json(path: Path) -> dict[str, Any]:
    """The object in a small JSON file, or a BackboneError."""
    try:
        if path.stat().st_size > _READ:
            raise ValueError("it is far too long")
        values = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise BackboneError(f"{path.parent} has no {path.name}: it is no folder of a transformers network") from error
    except (ValueError, RecursionError) as error:
        raise BackboneError(f"{path} cannot be read ({error}); download it again") from error
    if not isinstance(values, dict):
        raise BackboneError(f"{path} holds no names and values; download it again")
    return values


def checked_config(values: Any, name: str) -> dict[str, Any]:
    """The part of a configuration that gives the network its shape; all else is left out.

    Args:
        values: of a config.json, or of a run's model.json.
        name: of the backbone, for the message.
    """
    if not isinstance(values, Mapping) or not isinstance(values.get("model_type"), str):
        raise BackboneError(f"the configuration of {name} does not say its model_type; it is damaged")
    kind = values["model_type"]
    known = _keys(kind, name)
    kept = {key: value for key, value in values.items() if key in known and value is not None}
    for key, value in kept.items():
        _check_value(key, value, name)
    return {"model_type": kind, **kept}


def config_object(config: Mapping[str, Any]) -> Any:
    """The configuration as an object of transformers; its class is the library's own."""
    from transformers import CONFIG_MAPPING  # noqa: PLC0415 - an extra

    return CONFIG_MAPPING[config["model_type"]](**{key: value for key, value in config.items() if key != "model_type"})


def _keys(kind: str, name: str) -> frozenset[str]:
    """Names that a configuration of that kind of network has."""
    try:
        from transformers import CONFIG_MAPPING  # noqa: PLC0415
        from transformers.models.auto import modeling_auto as tables  # noqa: PLC0415
    except ImportError as error:
        raise BackboneError(f'{name} is a network of transformers: pip install "paretoda[hub]"') from error
    known = {*tables.MODEL_FOR_IMAGE_MAPPING_NAMES, *tables.MODEL_FOR_BACKBONE_MAPPING_NAMES}
    if kind.startswith("timm"):
        raise BackboneError(f"{name} is a network of timm: take --backbone timm:NAME")
    if kind not in CONFIG_MAPPING or not (kind in known or kind.endswith("_vision_model")):
        raise BackboneError(f"{name} is of the type {kind!r}, which is no network of images alone that is known here")
    usual = CONFIG_MAPPING[kind]()
    keys = {*usual.to_dict(), *getattr(usual, "attribute_map", {})}
    if any(key in keys for key in _INSIDE):
        raise BackboneError(
            f"{name} is of the type {kind!r}, with another network inside; give that one by its own name"
        )
    return frozenset(key for key in keys if not key.startswith("_")) - _UNUSED - {"model_type"}


def _check_value(key: str, value: Any, name: str) -> None:
    """Raise unless it is a sensible number, word, or a short list or table of such."""
    parts = [value]
    if isinstance(value, Mapping):
        parts = [*value, *value.values()]
    elif isinstance(value, list):
        parts = [part for each in value for part in (each if isinstance(each, list) else [each])]
    if len(parts) > _LONGEST or not all(_sensible(part) for part in parts):
        raise BackboneError(f"the configuration of {name} has a {key} that no network for images has; it is damaged")


def _sensible(value: Any) -> bool:
    if isinstance(value, int | float):
        return isfinite(value) and abs(value) <= _LARGEST
    return value is None or (isinstance(value, str) and len(value) <= _LONGEST)


@contextmanager
def quietly() -> Iterator[None]:
    """Inside, transformers neither reports nor shows bars: what matters is told by us."""
    from transformers.utils import logging as library  # noqa: PLC0415

    told: Any = library
    level, bars = told.get_verbosity(), told.is_progress_bar_enabled()
    told.set_verbosity(logging.CRITICAL)
    told.disable_progress_bar()
    try:
        yield
    finally:
        told.set_verbosity(level)
        if bars:
            told.enable_progress_bar()


def version() -> str:
    """Of transformers."""
    from transformers import __version__  # noqa: PLC0415

    return str(__version__)
