"""Loading of weights from a local file: all tensors fit, or the model stays as it was and the error names the keys."""

from __future__ import annotations

import logging
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from paretoda.core.wording import name_some
from paretoda.errors import WeightsError

_LOG = logging.getLogger(__name__)
SUFFIXES = (".pth", ".pt", ".bin", ".safetensors")
_CLASSIFIER = ("fc.", "_fc.")  # torchvision, efficientnet_lite


def load_weights(model: nn.Module, path: str | Path, classifier: tuple[str, ...] = _CLASSIFIER) -> tuple[str, ...]:
    """Load the tensors of a file into the model.

    Only the classifier of the file may be left unused, and only if the model has none; a log message says so.

    Args:
        model: Model whose tensors are replaced.
        path: Path of the file.
        classifier: Prefixes of the names of a classifier's tensors.

    Returns:
        The keys that were not used.

    Raises:
        WeightsError: The tensors are not those of the model.
        FileNotFoundError: There is no such file.
    """
    path = Path(path)
    state = read_tensors(path)
    wanted = model.state_dict()
    has_classifier = any(key.startswith(classifier) for key in wanted)
    unused = () if has_classifier else tuple(key for key in state if key.startswith(classifier))
    state = {key: tensor for key, tensor in state.items() if key not in unused}
    check_fit(state, wanted, path)
    # A plain dictionary has no version, so that BatchNorm accepts old files without num_batches_tracked.
    model.load_state_dict(state)
    if unused:
        _LOG.info("%s: %s not used, the model is an encoder without a classifier", path.name, ", ".join(unused))
    return unused


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file by name; nothing in it is executed.

    Raises:
        WeightsError: It is not a file of tensors.
        FileNotFoundError: There is no such file.
    """
    if path.suffix not in SUFFIXES:
        raise WeightsError(f"{path}: weights are read from {', '.join(SUFFIXES)} files, convert it first")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of weights at {path}")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        state = load_stored(path)
    except OSError:
        raise
    except Exception as error:  # unpicklers and archives raise all kinds of errors on broken bytes
        writer = "safetensors" if path.suffix == ".safetensors" else "torch.save"
        raise WeightsError(f"{path} is not a file of tensors written by {writer}") from error
    if not isinstance(state, Mapping) or not all(isinstance(key, str) and _plain(state[key]) for key in state):
        raise WeightsError(f"{path} does not hold a state dict, a mapping of names to tensors")
    return dict(state)


def load_stored(path: Path) -> Any:
    """Read what torch.save wrote, on the CPU; its pickle may hold tensors and plain values only, and runs no code.

    torch.save never compresses, so a compressed archive comes from elsewhere and may fill the memory.
    """
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
                raise ValueError("its parts are packed, which torch.save never does")
    with warnings.catch_warnings():  # torch warns of an unsafe pickle before it refuses it
        warnings.simplefilter("ignore")
        return torch.load(path, map_location="cpu", weights_only=True)


def _plain(value: object) -> bool:
    """Whether the value is a tensor with stored numbers: not sparse, quantised, complex or without memory."""
    strided = isinstance(value, Tensor) and value.layout == torch.strided and value.device.type == "cpu"
    return strided and isinstance(value, Tensor) and not value.is_quantized and not value.is_complex()


def check_shapes(build: Callable[[], nn.Module], found: Mapping[str, Tensor], path: Path) -> None:
    """Raise unless the tensors fit the network that `build` makes; no memory is allocated for the network itself.

    A description may ask for a layer of any size, but tensors are no larger than their file.

    Raises:
        WeightsError: The tensors do not fit.
    """
    with torch.device("meta"), _Unfilled():
        wanted = build().state_dict()
    check_fit(found, wanted, path)


class _Unfilled(TorchFunctionMode):
    """Inside, nothing is written into tensors: for those without memory that would import two seconds of modules."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name.endswith("_") and not name.endswith("__") and name != "requires_grad_":
            return args[0] if args else next(iter(kwargs.values()))
        return func(*args, **(kwargs or {}))


def check_fit(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], path: Path) -> None:
    """Raise unless the tensors of the file are those of the model, except for BatchNorm's counters.

    Raises:
        WeightsError: Tensors are missing, unknown or of another shape.
    """
    # Files older than PyTorch 0.4.1, torchvision's first ones among them, have no counters.
    missing = [key for key in wanted if key not in found and not key.endswith(".num_batches_tracked")]
    unknown = [key for key in found if key not in wanted]
    misshapen = [
        f"{key} {tuple(found[key].shape)} instead of {tuple(wanted[key].shape)}"
        for key in found
        if key in wanted and found[key].shape != wanted[key].shape
    ]
    faults = {"missing": missing, "not in the model": unknown, "of another shape": misshapen}
    if any(faults.values()):
        text = "; ".join(f"{len(keys)} {fault}: {name_some(keys)}" for fault, keys in faults.items() if keys)
        raise WeightsError(f"{path} holds the weights of another model: {text}")
