"""hf:FOLDER_OR_NAME: an image network of transformers, built from its configuration and never from foreign code."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from paretoda.errors import BackboneError, WeightsError
from paretoda.models.backbones.backbone import Backbone
from paretoda.models.weights import CONFIG, PREPROCESSOR, find_folder, list_weights_files, read_tensors

_LARGEST, _LONGEST = 2**16, 256
"""Largest number, and longest list of numbers, in a configuration of an image network."""
_INSIDE = ("backbone", "backbone_config")
_UNUSED = frozenset(
    {
        *("transformers_version", "architectures", "output_hidden_states", "output_attentions", "return_dict"),
        *("dtype", "torch_dtype", "id2label", "label2id", "num_labels", "problem_type", "quantization_config"),
        *("chunk_size_feed_forward", "is_encoder_decoder", "attn_implementation", "auto_map", "out_features"),
        *("out_indices", "stage_names"),
    }
)
"""Keys that do not affect the shape of the network, or that would let others decide which code runs."""
_READ = 2**20
_USUAL_SIZE = 224
_MOST_PARAMETERS = 4_000
"""Largest number of tensors in a network; the deepest published image networks have about a thousand."""
_MORE_BUFFERS = 2**24
_WITHOUT_A_FILE, _BESIDE_A_FILE = 2**28, 2**20
"""Largest numbers of weights of a network whose folder has no weights, and of layers that the file lacks."""


def read_json(path: Path) -> dict[str, Any]:
    """Read the object in a small JSON file.

    Raises:
        BackboneError: There is no such file, or it does not hold an object.
    """
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


def check_config(values: Any, name: str) -> dict[str, Any]:
    """Return the part of a configuration that determines the shape of the network; everything else is left out.

    Args:
        values: Contents of a config.json, or of a run's model.json.
        name: Name of the backbone, for the error message.

    Raises:
        BackboneError: The type is unknown, or a value is not plausible.
    """
    if not isinstance(values, Mapping) or not isinstance(values.get("model_type"), str):
        raise BackboneError(f"the configuration of {name} does not say its model_type; it is damaged")
    kind = values["model_type"]
    known = _keys(kind, name)
    kept = {key: value for key, value in values.items() if key in known and value is not None}
    for key, value in kept.items():
        _check_value(key, value, name)
    return {"model_type": kind, **kept}


def make_config(config: Mapping[str, Any]) -> Any:
    """Return the configuration as an object of transformers; its class is the library's own."""
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
    """Raise unless it is a plausible number or word, or a short list or table of such values."""
    parts = [value]
    if isinstance(value, Mapping):
        parts = [*value, *value.values()]
    elif isinstance(value, list):
        parts = [part for each in value for part in (each if isinstance(each, list) else [each])]
    if len(parts) > _LONGEST or not all(_plausible(part) for part in parts):
        raise BackboneError(f"the configuration of {name} has a {key} that no network for images has; it is damaged")


def _plausible(value: Any) -> bool:
    if isinstance(value, int | float):
        return isfinite(value) and abs(value) <= _LARGEST
    return value is None or (isinstance(value, str) and len(value) <= _LONGEST)


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Inside, transformers neither logs nor shows progress bars; our own messages say what matters."""
    from transformers.utils import logging as library  # noqa: PLC0415

    library_logging: Any = library
    level, bars = library_logging.get_verbosity(), library_logging.is_progress_bar_enabled()
    library_logging.set_verbosity(logging.CRITICAL)
    library_logging.disable_progress_bar()
    try:
        yield
    finally:
        library_logging.set_verbosity(level)
        if bars:
            library_logging.enable_progress_bar()


def library_version() -> str:
    """Version of transformers."""
    from transformers import __version__  # noqa: PLC0415

    return str(__version__)


@dataclass(frozen=True)
class ImageFormat:
    """Images as a network was trained on them.

    Args:
        size: Side in pixels.
        multiple: Number that the sides must be multiples of.
        channels: 1 or 3.
        mean: Mean of each channel, of pixels in 0..1.
        std: Standard deviation of each channel, of pixels in 0..1.
    """

    size: int | None
    multiple: int
    channels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]


def read_images(preprocessor: Mapping[str, Any], config: Mapping[str, Any], name: str) -> ImageFormat:
    """Read size and normalisation from the preprocessor.

    Without one, the size is that of the configuration, 224 at most, and mean and standard deviation are 0.5.

    Args:
        preprocessor: Contents of preprocessor_config.json; empty where there is none.
        config: Configuration of the network.
        name: Name of the backbone, for the error message.

    Raises:
        BackboneError: A value is not plausible.
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
    return ImageFormat(size, multiple, channels, mean, std)


def _size(preprocessor: Mapping[str, Any]) -> int | None:
    """Side of the images that the network sees: that of the crop, if there is one."""
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


def describe_backbone(source: str) -> Backbone:
    """Describe the backbone in a folder, or of a name at the hub; its weights are read by `load`."""
    folder = find_folder(source)
    name = f"hf:{source}"
    config = check_config(read_json(folder / CONFIG), name)
    path = folder / PREPROCESSOR
    images = read_images(read_json(path) if path.is_file() else {}, config, name)
    _check_size(config, name, folder)
    found = _backbone(config, name, images)
    return Backbone(**{**vars(found), "load": partial(_load, name=name, folder=folder, config=config)})


def _check_size(config: Mapping[str, Any], name: str, folder: Path) -> None:
    """Raise where the configuration asks for a far larger network than the weights are for."""
    files = list_weights_files(folder)
    most = sum(file.stat().st_size for file in files) + _BESIDE_A_FILE if files else _WITHOUT_A_FILE
    with torch.device("meta"):
        asked = sum(parameter.numel() for parameter in _build(config, name).parameters())
    if asked > most:  # a weight takes at least one byte
        raise BackboneError(f"{folder / CONFIG} asks for {asked:.3g} weights, for which its folder is too small")


def rebuild_backbone(facts: Mapping[str, Any], name: str) -> Backbone:
    """Describe the backbone of a finished run, without reading a folder or the hub."""
    config = check_config(facts.get("config"), name)
    return _backbone(config, name, read_images({}, config, name))


def _backbone(config: Mapping[str, Any], name: str, images: ImageFormat) -> Backbone:
    return Backbone(
        build=lambda _: _build(config, name),
        width=0,
        mean=images.mean,
        std=images.std,
        photos=True,
        size=images.size,
        multiple=images.multiple,
        channels=images.channels,
        facts={"config": dict(config), "transformers": library_version()},
    )


class Pooled(nn.Module):
    """Network of transformers with one row of features for each image.

    Args:
        model: Any model that takes `pixel_values`.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        pooler = getattr(model, "pooler", None)
        if isinstance(getattr(pooler, "dense", None), nn.Linear):
            model.register_module("pooler", None)
        self.model = model
        self.has_class_token = any(
            name.endswith(("cls_token", "class_embedding")) for name, _ in model.named_parameters()
        )
        takes = inspect.signature(model.forward).parameters
        self.also = {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in takes else {}

    def forward(self, images: Tensor) -> Tensor:
        """Map images (n, channels, h, w) to features (n, width)."""
        found = self.model(pixel_values=images, **self.also)
        pooled: Tensor | None = getattr(found, "pooler_output", None)
        if pooled is not None:
            return pooled.flatten(1)
        maps = getattr(found, "feature_maps", None)
        last: Tensor = found.last_hidden_state if maps is None else maps[-1]
        if last.ndim == 4:
            return last.mean(dim=(2, 3))
        return last[:, 0] if self.has_class_token else last.mean(dim=1)


def _build(config: Mapping[str, Any], name: str) -> Pooled:
    """Build the network with random weights; a trial on "meta" comes first, before any memory is allocated."""
    try:
        with torch.device("meta"):
            trial = _make_network(config)
        if sum(buffer.numel() for buffer in trial.buffers()) > _MORE_BUFFERS + sum(
            parameter.numel() for parameter in trial.parameters()
        ):
            raise ValueError("its tables are larger than its weights")
        return trial if torch.get_default_device().type == "meta" else _make_network(config)
    except BackboneError:
        raise
    except Exception as error:  # a damaged or hostile configuration may raise anything
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
        raise BackboneError(
            f"transformers {library_version()} makes no network of the {CONFIG} of {name} ({reason})"
        ) from error


def _make_network(config: Mapping[str, Any]) -> Pooled:
    from transformers import AutoBackbone, AutoModel  # noqa: PLC0415 - an extra
    from transformers.models.auto.modeling_auto import MODEL_MAPPING  # noqa: PLC0415

    made = make_config(config)
    automatic: Any = AutoModel if type(made) in MODEL_MAPPING else AutoBackbone
    with _few_parameters(), silence_transformers():
        # Eager attention: some schemes differentiate gradients, which the faster kernels do not allow.
        return Pooled(automatic.from_config(made, attn_implementation="eager", trust_remote_code=False).float())


@contextmanager
def _few_parameters() -> Iterator[None]:
    """Inside, the construction of a network without end is stopped."""
    seen = 0

    def count(*_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen > _MOST_PARAMETERS:
            raise BackboneError(f"the network has more than {_MOST_PARAMETERS} tensors; its configuration is damaged")

    handle = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        handle.remove()


def _load(network: nn.Module, weights: str | None, *, name: str, folder: Path, config: Mapping[str, Any]) -> None:
    """Put the weights of the folder into the network; transformers knows the older names of its tensors."""
    assert isinstance(network, Pooled)
    if weights is not None:
        raise BackboneError(f"{name} has its own weights; leave out --backbone-weights, or put {weights} in its folder")
    files = list_weights_files(folder)
    if not files:
        raise BackboneError(f"{folder} has no weights: put model.safetensors there, or take --backbone-weights none")
    tensors: dict[str, Tensor] = {}
    for file in files:
        tensors |= read_tensors(file)
    model: Any = network.model
    try:
        with silence_transformers():
            loaded, loading = type(model).from_pretrained(
                None, config=make_config(config), state_dict=tensors, output_loading_info=True
            )
    except Exception as error:  # it raises many kinds of errors
        raise WeightsError(f"{files[0]} holds the weights of another model than {folder / CONFIG}") from error
    wanted = dict(model.state_dict())
    missing = sorted(key for key in loading["missing_keys"] if key in wanted)
    if missing or loading["mismatched_keys"]:
        some = ", ".join([*missing, *map(str, loading["mismatched_keys"])][:5])
        raise WeightsError(f"{files[0]} lacks weights of {name}: {some}")
    model.load_state_dict({key: value.float() for key, value in loaded.state_dict().items() if key in wanted})
