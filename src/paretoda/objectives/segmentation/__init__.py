"""Objectives of segmentation: those of whole maps, and those of rows at pixels; these are their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from paretoda.core.options import Options, unknown, with_options
from paretoda.objectives.alignment.cdan import Cdan
from paretoda.objectives.alignment.coral import Coral
from paretoda.objectives.alignment.dann import Dann
from paretoda.objectives.alignment.mcd import Mcd, Swd
from paretoda.objectives.alignment.mdd import Mdd
from paretoda.objectives.guide.agreement import AgreementGuide
from paretoda.objectives.guide.information import InformationGuide
from paretoda.objectives.guide.neighbours import NeighbourGuide
from paretoda.objectives.guide.prototypes import PrototypeGuide
from paretoda.objectives.guide.tcm import TcmGuide
from paretoda.objectives.segmentation.cbst import Cbst
from paretoda.objectives.segmentation.clan import Clan
from paretoda.objectives.segmentation.fda import FdaEntropy
from paretoda.objectives.segmentation.map_adversary import AdaSegNet, AdvEnt
from paretoda.objectives.segmentation.minent import MinEnt
from paretoda.objectives.segmentation.pixel_cross_entropy import PixelCrossEntropy
from paretoda.objectives.segmentation.pixel_objective import AtPixels, at_pixels, pixel_rows
from paretoda.objectives.target.bnm import Bnm
from paretoda.objectives.target.entropy import Entropy
from paretoda.objectives.target.information import Information
from paretoda.objectives.target.mcc import Mcc
from paretoda.objectives.target.tcm import Tcm
from paretoda.types import Objective

Factory = Callable[..., Objective]
"""Called with features and classes (guides: target_loss as well) and the objective's own options, by keyword."""

SEGMENTATION_SOURCE_LOSSES: dict[str, Factory] = {"cross-entropy": PixelCrossEntropy}
"""Name -> what is lowered on the labelled source."""

SEGMENTATION_METHODS: dict[str, Factory | None] = {
    "source-only": None,
    "adasegnet": AdaSegNet,
    "minent": MinEnt,
    "advent": AdvEnt,
    "clan": Clan,
    "fda": FdaEntropy,
    "cbst": Cbst,
    "crst": partial(Cbst, mrkld=0.1),
    "cycada": AdaSegNet,  # its translation of the source's images is made with the data
    "swd": at_pixels(Swd),
    "mcd": at_pixels(Mcd),
    "dann": at_pixels(Dann),
    "cdan": at_pixels(Cdan),
    "cdan-e": partial(at_pixels(Cdan), entropy=True),
    "mdd": at_pixels(Mdd),
    "coral": at_pixels(Coral),
}
"""Name -> what brings the domains together; None for nothing."""

SEGMENTATION_TARGET_LOSSES: dict[str, Factory | None] = {
    "none": None,
    "tcm": partial(at_pixels(Tcm), light=True, width=64, momentum=0.9),  # a few images are not the target's classes
    "im": at_pixels(Information, reads_source=False),
    "entropy": at_pixels(Entropy, reads_source=False),
    "mcc": at_pixels(Mcc, reads_source=False),
    "bnm": at_pixels(Bnm, reads_source=False),
}
"""Name -> what is lowered on the unlabelled target; None for nothing."""

SEGMENTATION_GUIDES: dict[str, Factory] = {
    "tcm": at_pixels(TcmGuide, reads_source=False),
    "im": at_pixels(InformationGuide, reads_source=False),
    "prototypes": at_pixels(PrototypeGuide, reads_source=False),
    "neighbours": at_pixels(NeighbourGuide, reads_source=False),
    "agreement": at_pixels(AgreementGuide, reads_source=False),
}
"""Name -> what is measured on held-out target images."""


def make_pixel_method(name: str, *, features: int, classes: int, options: Options | None = None) -> Objective | None:
    """The method of that name; None for "source-only"."""
    return _make("method", name, SEGMENTATION_METHODS, {"features": features, "classes": classes}, options)


def make_pixel_target_loss(
    name: str, *, features: int, classes: int, options: Options | None = None
) -> Objective | None:
    """The target loss of that name; None for "none"."""
    return _make("target loss", name, SEGMENTATION_TARGET_LOSSES, {"features": features, "classes": classes}, options)


def make_pixel_guide(
    name: str, *, features: int, classes: int, target_loss: Objective | None = None, options: Options | None = None
) -> Objective:
    """The guide of that name; one that asks the target loss asks the objective behind the pixels."""
    inner = target_loss.inner if isinstance(target_loss, AtPixels) else target_loss
    given = {"features": features, "classes": classes, "target_loss": inner}
    guide = _make("guide", name, SEGMENTATION_GUIDES, given, options)
    assert guide is not None  # no guide in the table is None
    return guide


def _make(
    kind: str,
    name: str,
    table: Mapping[str, Factory | None],
    given: Mapping[str, object],
    options: Options | None,
) -> Objective | None:
    if name not in table:
        raise ValueError(unknown(kind, name, table))
    factory = table[name]
    return with_options(name, _nothing, {}, options) if factory is None else with_options(name, factory, given, options)


def _nothing() -> None:
    """What "source-only" and "none" are made of."""


__all__ = [
    "SEGMENTATION_GUIDES",
    "SEGMENTATION_METHODS",
    "SEGMENTATION_SOURCE_LOSSES",
    "SEGMENTATION_TARGET_LOSSES",
    "AdaSegNet",
    "AdvEnt",
    "AtPixels",
    "Cbst",
    "Clan",
    "FdaEntropy",
    "MinEnt",
    "PixelCrossEntropy",
    "make_pixel_guide",
    "make_pixel_method",
    "make_pixel_target_loss",
    "pixel_rows",
]
