"""The methods of the paper's tables 1 to 4 as contenders: `paretoda bench office31 --contenders paper`.

"DANN" and the like are plain sums of their losses. "+ ParetoDA" is Eq. 6, guided by the held-out TCM loss; the default
scheme `paretoda` is another row (`--methods dann --schemes paretoda`). Presets hold learning rates and the like.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paretoda.bench.contenders import Contender
from paretoda.bench.suites import SUITES, find_suite
from paretoda.core.options import unknown
from paretoda.errors import SettingsError
from paretoda.tasks.settings import make_settings

_NETWORKS = {"ResNet-50": ("resnet50",), "ResNet-101": ("resnet101", "deeplab-resnet101")}
"""Row of the paper that names a network -> our names of that network; the row is its source-only model."""
_SOURCE_ONLY = "source-only"
_BASES = {
    "ResNet-50": _SOURCE_ONLY,
    "ResNet-101": _SOURCE_ONLY,
    "DAN": "dan",
    "MCD": "mcd",
    "JADA": "jada",
    "TAT": "tat",
    "TPN": "tpn",
    "DTA": "dta",
    "GSP": "gsp",
    "DANN": "dann",
    "CDAN": "cdan-e",
    "MDD": "mdd",
    "AdaSegNet": "adasegnet",
    "CyCADA": "cycada",
    "CLAN": "clan",
    "AdvEnt": "advent",
    "FDA": "fda",
    "CBST": "cbst",
}
"""Name of a method in the paper -> its name here; the paper's CDAN is CDAN+E."""
_ONE_LEVEL = ("CLAN", "FDA", "CBST")
"""Methods whose own codes have no auxiliary output; those of AdaSegNet and AdvEnt have one."""
_ADDED: dict[str, dict[str, str]] = {
    "": {"target_loss": "none", "scheme": "linear"},
    "BSP": {"target_loss": "bsp", "scheme": "linear"},
    "MCC": {"target_loss": "mcc", "scheme": "linear"},
    "MetaAlign": {"target_loss": "none", "scheme": "metaalign"},
    "ParetoDA": {"target_loss": "tcm", "scheme": "paretoda-paper", "guide": "tcm"},
}
"""Name behind the plus -> settings."""


def make_paper_contenders(suite: str, same: Mapping[str, Any]) -> list[Contender]:
    """Return the rows of the paper's table of a suite that can be run here, in its order and with its names.

    A row that is called after a network has that name only if the contenders have this network; otherwise it is called
    "source-only".

    Args:
        suite: Name of a suite with a table of the paper.
        same: Settings of all contenders, apart from losses and schemes; the task among them, unless it is the default.
    """
    found = []
    for name in list_paper_rows(suite):
        settings = _find_settings(name)
        if _is_available(settings, suite):
            values = {**same, **settings}
            make_settings(values)
            found.append(Contender(_name_truthfully(name, suite, same), values))
    return found


def list_absent_rows(suite: str) -> list[str]:
    """Return the rows of the paper's table of a suite whose method does not exist here."""
    return [name for name in list_paper_rows(suite) if not _is_available(_find_settings(name), suite)]


def list_paper_rows(suite: str) -> list[str]:
    """Return the names of the methods in the paper's table of a suite."""
    known = [name for name, each in SUITES.items() if each.references]
    if suite not in known:
        raise SettingsError(unknown("table of the paper for the suite", suite, known))
    return [name.removesuffix(" (paper)") for name in find_suite(suite).references]


def _name_truthfully(name: str, suite: str, same: Mapping[str, Any]) -> str:
    """Return the name of our row: the paper's, unless it names a network that the row does not have."""
    task = next(iter(find_suite(suite).tasks.values()))
    backbone = same.get("backbone", task.settings.get("backbone"))
    return _SOURCE_ONLY if name in _NETWORKS and backbone not in _NETWORKS[name] else name


def _find_settings(name: str) -> dict[str, Any]:
    if name == "BNM":
        return {"method": _SOURCE_ONLY, "target_loss": "bnm", "scheme": "linear"}
    base, _, added = name.partition(" + ")
    return {"method": _BASES[base], **_ADDED[added], **({"levels": 1} if base in _ONE_LEVEL else {})}


def _is_available(settings: Mapping[str, Any], suite: str) -> bool:
    try:
        make_settings({"task": find_suite(suite).task, **settings})
    except SettingsError:
        return False
    return True
