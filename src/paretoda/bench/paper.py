"""The methods of the paper's tables 1 to 3 as contenders: `paretoda bench office31 --contenders paper`.

"DANN" and the like are plain sums of their losses. "+ ParetoDA" is Eq. 6, guided by the held-out TCM loss; the default
scheme `paretoda` is another row (`--methods dann --schemes paretoda`). Presets hold learning rates and the like.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paretoda.bench.contenders import Contender
from paretoda.bench.suites import PAPER_SUITES
from paretoda.core.options import unknown
from paretoda.errors import SettingsError
from paretoda.tasks.settings import make_settings

_BASES = {
    "ResNet-50": "source-only",
    "ResNet-101": "source-only",
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
}
"""Name of a method in the paper -> its name here; the paper's CDAN is CDAN+E."""
_ADDED: dict[str, dict[str, str]] = {
    "": {"target_loss": "none", "scheme": "linear"},
    "BSP": {"target_loss": "bsp", "scheme": "linear"},
    "MCC": {"target_loss": "mcc", "scheme": "linear"},
    "MetaAlign": {"target_loss": "none", "scheme": "metaalign"},
    "ParetoDA": {"target_loss": "tcm", "scheme": "paretoda-paper", "guide": "tcm"},
}
"""Name behind the plus -> settings."""


def make_paper_contenders(suite: str, same: Mapping[str, Any]) -> list[Contender]:
    """Return the rows of the paper's table of a suite that can be run here, in its order.

    Args:
        suite: Name of one of the paper's suites.
        same: Settings of all contenders, apart from losses and schemes.
    """
    found = []
    for name in list_paper_rows(suite):
        settings = _find_settings(name)
        if _is_available(settings):
            values = {**same, **settings}
            make_settings(values)
            found.append(Contender(name, values))
    return found


def list_absent_rows(suite: str) -> list[str]:
    """Return the rows of the paper's table of a suite whose method does not exist here."""
    return [name for name in list_paper_rows(suite) if not _is_available(_find_settings(name))]


def list_paper_rows(suite: str) -> list[str]:
    """Return the names of the methods in the paper's table of a suite."""
    if suite not in PAPER_SUITES:
        raise SettingsError(unknown("table of the paper for the suite", suite, PAPER_SUITES))
    return [name.removesuffix(" (paper)") for name in PAPER_SUITES[suite].references]


def _find_settings(name: str) -> dict[str, str]:
    if name == "BNM":
        return {"method": "source-only", "target_loss": "bnm", "scheme": "linear"}
    base, _, added = name.partition(" + ")
    return {"method": _BASES[base], **_ADDED[added]}


def _is_available(settings: Mapping[str, str]) -> bool:
    try:
        make_settings(settings)
    except SettingsError:
        return False
    return True
