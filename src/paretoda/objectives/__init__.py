"""Objectives: what a step lowers. One file, one objective; these are their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from paretoda.core.options import Options, unknown, with_options
from paretoda.objectives.alignment.afn import Afn
from paretoda.objectives.alignment.cdan import Cdan
from paretoda.objectives.alignment.coral import Coral
from paretoda.objectives.alignment.dan import Dan, Ddc
from paretoda.objectives.alignment.dann import Dann
from paretoda.objectives.alignment.dta import Dta
from paretoda.objectives.alignment.gsp import Gsp
from paretoda.objectives.alignment.jada import Jada
from paretoda.objectives.alignment.jan import Jan, JanA
from paretoda.objectives.alignment.mcd import Mcd, Swd
from paretoda.objectives.alignment.mdd import Mdd
from paretoda.objectives.alignment.tat import Tat
from paretoda.objectives.alignment.tpn import Tpn
from paretoda.objectives.guide.agreement import AgreementGuide
from paretoda.objectives.guide.information import InformationGuide
from paretoda.objectives.guide.neighbours import NeighbourGuide
from paretoda.objectives.guide.prototypes import PrototypeGuide
from paretoda.objectives.guide.tcm import TcmGuide
from paretoda.objectives.source.cross_entropy import CrossEntropy
from paretoda.objectives.target.bnm import Bnm
from paretoda.objectives.target.bsp import Bsp
from paretoda.objectives.target.entropy import Entropy
from paretoda.objectives.target.information import Information
from paretoda.objectives.target.mcc import Mcc
from paretoda.objectives.target.propagation import Propagation
from paretoda.objectives.target.tcm import Tcm
from paretoda.types import Objective

Factory = Callable[..., Objective]
"""Called with features and classes (guides: target_loss as well) and the objective's own options, by keyword."""

SOURCE_LOSSES: dict[str, Factory] = {"cross-entropy": CrossEntropy}
"""Name -> what is lowered on the labelled source."""

ALIGNMENTS: dict[str, Factory | None] = {
    "source-only": None,
    "dann": Dann,
    "cdan": Cdan,
    "cdan-e": partial(Cdan, entropy=True),
    "mdd": Mdd,
    "dan": Dan,
    "ddc": Ddc,
    "jan": Jan,
    "jan-a": JanA,
    "coral": Coral,
    "afn": Afn,
    "mcd": Mcd,
    "swd": Swd,
    "jada": Jada,
    "tat": Tat,
    "tpn": Tpn,
    "dta": Dta,
    "gsp": Gsp,
}
"""Name -> what brings the domains together; None for nothing."""

TARGET_LOSSES: dict[str, Factory | None] = {
    "none": None,
    "tcm": Tcm,
    "im": Information,
    "entropy": Entropy,
    "propagation": Propagation,
    "mcc": Mcc,
    "bnm": Bnm,
    "bsp": Bsp,
}
"""Name -> what is lowered on the unlabelled target; None for nothing."""

GUIDES: dict[str, Factory] = {
    "tcm": TcmGuide,
    "im": InformationGuide,
    "prototypes": PrototypeGuide,
    "neighbours": NeighbourGuide,
    "agreement": AgreementGuide,
}
"""Name -> what is measured on held-out target samples."""


def make_alignment(name: str, *, features: int, classes: int, options: Options | None = None) -> Objective | None:
    """The alignment of that name; None for "source-only"."""
    factory = _find("method", name, ALIGNMENTS)
    return _build(name, factory, {"features": features, "classes": classes}, options)


def make_target_loss(name: str, *, features: int, classes: int, options: Options | None = None) -> Objective | None:
    """The target loss of that name; None for "none"."""
    factory = _find("target loss", name, TARGET_LOSSES)
    return _build(name, factory, {"features": features, "classes": classes}, options)


def make_guide(
    name: str, *, features: int, classes: int, target_loss: Objective | None = None, options: Options | None = None
) -> Objective:
    """The guide of that name."""
    factory = _find("guide", name, GUIDES)
    given = {"features": features, "classes": classes, "target_loss": target_loss}
    guide = _build(name, factory, given, options)
    assert guide is not None  # no guide in the table is None
    return guide


def _find(kind: str, name: str, table: Mapping[str, Factory | None]) -> Factory | None:
    if name not in table:
        raise ValueError(unknown(kind, name, table))
    return table[name]


def _build(
    name: str, factory: Factory | None, given: Mapping[str, object], options: Options | None
) -> Objective | None:
    return with_options(name, _nothing if factory is None else factory, given if factory else {}, options)


def _nothing() -> None:
    """What "source-only" and "none" are made of."""


__all__ = [
    "ALIGNMENTS",
    "GUIDES",
    "SOURCE_LOSSES",
    "TARGET_LOSSES",
    "Afn",
    "AgreementGuide",
    "Bnm",
    "Bsp",
    "Cdan",
    "Coral",
    "CrossEntropy",
    "Dan",
    "Dann",
    "Ddc",
    "Dta",
    "Entropy",
    "Factory",
    "Gsp",
    "Information",
    "InformationGuide",
    "Jada",
    "Jan",
    "JanA",
    "Mcc",
    "Mcd",
    "Mdd",
    "NeighbourGuide",
    "Options",
    "Propagation",
    "PrototypeGuide",
    "Swd",
    "Tat",
    "Tcm",
    "TcmGuide",
    "Tpn",
    "make_alignment",
    "make_guide",
    "make_target_loss",
]
