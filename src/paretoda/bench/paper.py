"""The methods of the paper's tables 1 to 3 as contenders: `paretoda bench office31 --contenders paper`.

"DANN" and the like are plain sums of their losses. "+ ParetoDA" is Eq. 6, guided by the held-out TCM loss; the default
scheme `paretoda` is another row (`--methods dann --schemes paretoda`). Learning rates and so on are a preset's affair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paretoda.bench.contenders import Contender
from paretoda.bench.suites import PAPER_SUITES
from paretoda.core.options import unknown
from paretoda.errors import SettingsError
from paretoda.run.settings import make_settings

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
"""What the paper calls a method -> its name here; its CDAN is CDAN+E."""
_ADDED: dict[str, dict[str, str]] = {
    "": {"target_loss": "none", "scheme": "linear"},
    "BSP": {"target_loss": "bsp", "scheme": "linear"},
    "MCC": {"target_loss": "mcc", "scheme": "linear"},
    "MetaAlign": {"target_loss": "none", "scheme": "metaalign"},
    "ParetoDA": {"target_loss": "tcm", "scheme": "paretoda-paper", "guide": "tcm"},
}
"""What stands behind the plus -> settings."""


def paper_contenders(suite: str, same: Mapping[str, Any]) -> list[Contender]:
    """The rows of the suite's table that can be run here, in its order.

    Args:
        suite: one of the paper's.
        same: settings of all, but for their losses and schemes.
    """
    found = []
    for name in paper_rows(suite):
        settings = _settings(name)
        if _registered(settings):
            values = {**same, **settings}
            make_settings(values)
            found.append(Contender(name, values))
    return found


def left_out(suite: str) -> list[str]:
    """The rows of the suite's table whose method is not here."""
    return [name for name in paper_rows(suite) if not _registered(_settings(name))]


def paper_rows(suite: str) -> list[str]:
    """Names of the methods in the paper's table of a suite."""
    if suite not in PAPER_SUITES:
        raise SettingsError(unknown("table of the paper for the suite", suite, PAPER_SUITES))
    return [name.removesuffix(" (paper)") for name in PAPER_SUITES[suite].references]


def _settings(name: str) -> dict[str, str]:
    if name == "BNM":
        return {"method": "source-only", "target_loss": "bnm", "scheme": "linear"}
    base, _, added = name.partition(" + ")
    return {"method": _BASES[base], **_ADDED[added]}


def _registered(settings: Mapping[str, str]) -> bool:
    try:
        make_settings(settings)
    except SettingsError:
        return False
    return True


def _published(columns: Sequence[str], rows: dict[str, str]) -> dict[str, dict[str, float]]:
    """Rows of percentages as fractions; each row has one for every column."""
    return {
        f"{name} (paper)": {
            column: round(float(value) / 100, 3) for column, value in zip(columns, values.split(), strict=True)
        }
        for name, values in rows.items()
    }
