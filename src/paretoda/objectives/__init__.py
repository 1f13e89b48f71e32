"""Objectives: the losses that a step lowers. One file holds one objective; these are their tables."""

from __future__ import annotations

from functools import partial

from paretoda.core.options import Options
from paretoda.objectives.alignment.afn import Afn
from paretoda.objectives.alignment.cdan import Cdan
from paretoda.objectives.alignment.coral import Coral
from paretoda.objectives.alignment.dan import Dan, Ddc
from paretoda.objectives.alignment.dann import Dann
from paretoda.objectives.alignment.dta import Dta
from paretoda.objectives.alignment.gsp import Gsp
from paretoda.objectives.alignment.jada import Jada
from paretoda.objectives.alignment.jan import Jan, JanA
from paretoda.objectives.alignment.m3sda import M3sda
from paretoda.objectives.alignment.mcd import Mcd, Swd
from paretoda.objectives.alignment.mdan import Mdan
from paretoda.objectives.alignment.mdd import Mdd
from paretoda.objectives.alignment.mme import Mme
from paretoda.objectives.alignment.rsd import Rsd
from paretoda.objectives.alignment.tat import Tat
from paretoda.objectives.alignment.tpn import Tpn
from paretoda.objectives.guide.information import InformationGuide, TcmGuide
from paretoda.objectives.guide.pseudo_labels import AgreementGuide, NeighbourGuide, PrototypeGuide
from paretoda.objectives.parts.table import Factory, make_objective
from paretoda.objectives.source.cross_entropy import CrossEntropy
from paretoda.objectives.target.aad import Aad
from paretoda.objectives.target.bnm import Bnm
from paretoda.objectives.target.bsp import Bsp
from paretoda.objectives.target.centroids import Centroids
from paretoda.objectives.target.information import Entropy, Information
from paretoda.objectives.target.mcc import Mcc
from paretoda.objectives.target.mean_teacher import MeanTeacher
from paretoda.objectives.target.mixup import Mixup
from paretoda.objectives.target.novelty import Novelty
from paretoda.objectives.target.propagation import Propagation
from paretoda.objectives.target.tcm import Tcm
from paretoda.types import Objective

SOURCE_LOSSES: dict[str, Factory] = {"cross-entropy": CrossEntropy}
"""Name -> loss on the labelled source."""

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
    "mme": Mme,
    "mdan": Mdan,
    "m3sda": M3sda,
    "rsd": Rsd,
}
"""Name -> alignment of the domains; None for no alignment."""

COUNTS_SOURCES = ("mdan",)
"""Alignments with networks of their own for each of several sources."""

TARGET_LOSSES: dict[str, Factory | None] = {
    "none": None,
    "tcm": Tcm,
    "im": Information,
    "entropy": Entropy,
    "propagation": Propagation,
    "mcc": Mcc,
    "bnm": Bnm,
    "bsp": Bsp,
    "aad": Aad,
    "centroids": Centroids,
    "mixup": Mixup,
    "mean-teacher": MeanTeacher,
    "novelty": Novelty,
}
"""Name -> loss on the unlabelled target; None for no loss."""

GUIDES: dict[str, Factory] = {
    "tcm": TcmGuide,
    "im": InformationGuide,
    "prototypes": PrototypeGuide,
    "neighbours": NeighbourGuide,
    "agreement": AgreementGuide,
}
"""Name -> loss on held-out target samples, whose gradient guides the weights."""


def make_alignment(
    name: str, *, features: int, classes: int, sources: int = 1, options: Options | None = None
) -> Objective | None:
    """Build the alignment of that name.

    Args:
        name: Name in `ALIGNMENTS`.
        features: Width d of the features.
        classes: Number of classes K.
        sources: Number of sources, for alignments that have networks for each.
        options: Options of the alignment by name.

    Returns:
        The alignment; None for "source-only".

    Raises:
        ValueError: The name or an option is unknown.

    Examples:
        >>> make_alignment("dann", features=4, classes=3, options={"warm_up": False}).warm_up
        False
        >>> make_alignment("source-only", features=4, classes=3) is None
        True
    """
    given = {"features": features, "classes": classes, **({"sources": sources} if name in COUNTS_SOURCES else {})}
    return make_objective("method", name, ALIGNMENTS, given, options)


def make_target_loss(name: str, *, features: int, classes: int, options: Options | None = None) -> Objective | None:
    """Build the target loss of that name.

    Args:
        name: Name in `TARGET_LOSSES`.
        features: Width d of the features.
        classes: Number of classes K.
        options: Options of the target loss by name.

    Returns:
        The target loss; None for "none".

    Raises:
        ValueError: The name or an option is unknown.

    Examples:
        >>> make_target_loss("mcc", features=4, classes=3).temperature
        2.5
    """
    return make_objective("target loss", name, TARGET_LOSSES, {"features": features, "classes": classes}, options)


def make_guide(
    name: str, *, features: int, classes: int, target_loss: Objective | None = None, options: Options | None = None
) -> Objective:
    """Build the guide of that name.

    Args:
        name: Name in `GUIDES`.
        features: Width d of the features.
        classes: Number of classes K.
        target_loss: Target loss of the run, for guides that read it ("tcm", "im").
        options: Options of the guide by name.

    Returns:
        The guide.

    Raises:
        ValueError: The name or an option is unknown, or the guide needs another target loss.

    Examples:
        >>> make_guide("neighbours", features=4, classes=3, options={"k": 5}).k
        5
    """
    given = {"features": features, "classes": classes, "target_loss": target_loss}
    guide = make_objective("guide", name, GUIDES, given, options)
    assert guide is not None  # no guide in the table is None
    return guide


__all__ = [
    "ALIGNMENTS",
    "GUIDES",
    "SOURCE_LOSSES",
    "TARGET_LOSSES",
    "Aad",
    "Afn",
    "AgreementGuide",
    "Bnm",
    "Bsp",
    "Cdan",
    "Centroids",
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
    "M3sda",
    "Mcc",
    "Mcd",
    "Mdan",
    "Mdd",
    "MeanTeacher",
    "Mixup",
    "Mme",
    "NeighbourGuide",
    "Novelty",
    "Options",
    "Propagation",
    "PrototypeGuide",
    "Rsd",
    "Swd",
    "Tat",
    "Tcm",
    "TcmGuide",
    "Tpn",
    "make_alignment",
    "make_guide",
    "make_target_loss",
]
