"""hf:FOLDER_OR_NAME: any network for images of transformers, from its configuration, never from anybody's code.

Features are the pooled output where the network has one of its own; of a vision transformer the class token (its
pooling layer, dense and tanh, is untrained in most published files); otherwise the mean of the last map or tokens.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from paretoda.models.backbone import Backbone, BackboneError
from paretoda.models.hub import CONFIG, PREPROCESSOR, found_folder, weights_files
from paretoda.models.transformers_config import checked_config, config_object, quietly, read_json, version
from paretoda.models.transformers_images import Images, read_images
from paretoda.models.weights import WeightsError, read_tensors

_MOST_PARAMETERS = 4_000
"""Tensors in a network; the deepest for images that are published have about a thousand."""
_MORE_BUFFERS = 2**24
_WITHOUT_A_FILE, _BESIDE_A_FILE = 2**28, 2**20
"""Numbers in a network whose folder has no weights, and in its layers that the file lacks."""


def described(source: str) -> Backbone:
    """The backbone in a folder, or of a name at the hub; its weights are read by `load`."""
    folder = found_folder(source)
    name = f"hf:{source}"
    config = checked_config(read_json(folder / CONFIG), name)
    path = folder / PREPROCESSOR
    images = read_images(read_json(path) if path.is_file() else {}, config, name)
    _check_size(config, name, folder)
    found = _backbone(config, name, images)
    return Backbone(**{**vars(found), "load": partial(_load, name=name, folder=folder, config=config)})


def _check_size(config: Mapping[str, Any], name: str, folder: Path) -> None:
    """Raise where the configuration asks for a far larger network than the weights are for."""
    files = weights_files(folder)
    most = sum(file.stat().st_size for file in files) + _BESIDE_A_FILE if files else _WITHOUT_A_FILE
    with torch.device("meta"):
        asked = sum(parameter.numel() for parameter in _build(config, name).parameters())
    if asked > most:  # a weight has a byte at least
        raise BackboneError(f"{folder / CONFIG} asks for {asked:.3g} weights, for which its folder is too small")


def rebuilt(facts: Mapping[str, Any], name: str) -> Backbone:
    """The backbone of a finished run; neither a folder nor the hub is looked at."""
    config = checked_config(facts.get("config"), name)
    return _backbone(config, name, read_images({}, config, name))


def _backbone(config: Mapping[str, Any], name: str, images: Images) -> Backbone:
    return Backbone(
        build=lambda _: _build(config, name),
        width=0,
        mean=images.mean,
        std=images.std,
        photos=True,
        size=images.size,
        multiple=images.multiple,
        channels=images.channels,
        facts={"config": dict(config), "transformers": version()},
    )


class Pooled(nn.Module):
    """A network of transformers, and one row of features for each image.

    Args:
        model: any with `pixel_values`.
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
        """Images (n, channels, h, w) to features (n, width)."""
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
    """The network with random weights; before any memory is taken it is built without."""
    try:
        with torch.device("meta"):
            trial = _made(config)
        if sum(buffer.numel() for buffer in trial.buffers()) > _MORE_BUFFERS + sum(
            parameter.numel() for parameter in trial.parameters()
        ):
            raise ValueError("its tables are larger than its weights")
        return trial if torch.get_default_device().type == "meta" else _made(config)
    except BackboneError:
        raise
    except Exception as error:  # whatever a configuration that is damaged or a stranger's leads to
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
        raise BackboneError(
            f"transformers {version()} makes no network of the {CONFIG} of {name} ({reason})"
        ) from error


def _made(config: Mapping[str, Any]) -> Pooled:
    from transformers import AutoBackbone, AutoModel  # noqa: PLC0415 - an extra
    from transformers.models.auto.modeling_auto import MODEL_MAPPING  # noqa: PLC0415

    made = config_object(config)
    automatic: Any = AutoModel if type(made) in MODEL_MAPPING else AutoBackbone
    with _few_parameters(), quietly():
        # Eager attention: some schemes differentiate gradients, which the faster kernels do not allow.
        return Pooled(automatic.from_config(made, attn_implementation="eager", trust_remote_code=False).float())


@contextmanager
def _few_parameters() -> Iterator[None]:
    """Inside, a network that goes on for ever is given up."""
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
    """Put the folder's weights into the network; transformers knows the older names of its tensors."""
    assert isinstance(network, Pooled)
    if weights is not None:
        raise BackboneError(f"{name} has its own weights; leave out --backbone-weights, or put {weights} in its folder")
    files = weights_files(folder)
    if not files:
        raise BackboneError(f"{folder} has no weights: put model.safetensors there, or take --backbone-weights none")
    tensors: dict[str, Tensor] = {}
    for file in files:
        tensors |= read_tensors(file)
    model: Any = network.model
    try:
        with quietly():
            loaded, told = type(model).from_pretrained(
                None, config=config_object(config), state_dict=tensors, output_loading_info=True
            )
    except Exception as error:  # it raises whatever it finds first
        raise WeightsError(f"{files[0]} holds the weights of another model than {folder / CONFIG}") from error
    wanted = dict(model.state_dict())
    missing = sorted(key for key in told["missing_keys"] if key in wanted)
    if missing or told["mismatched_keys"]:
        some = ", ".join([*missing, *map(str, told["mismatched_keys"])][:5])
        raise WeightsError(f"{files[0]} lacks weights of {name}: {some}")
    model.load_state_dict({key: value.float() for key, value in loaded.state_dict().items() if key in wanted})
