"""Objectives of segmentation: those of whole maps, and those of rows at pixels; these are their tables."""

from __future__ import annotations

from functools import partial

from paretoda.core.options import Options
from paretoda.objectives.alignment.cdan import Cdan
from paretoda.objectives.alignment.coral import Coral
from paretoda.objectives.alignment.dann import Dann
from paretoda.objectives.alignment.mcd import Mcd, Swd
from paretoda.objectives.alignment.mdd import Mdd
from paretoda.objectives.guide.information import InformationGuide, TcmGuide
from paretoda.objectives.guide.pseudo_labels import AgreementGuide, NeighbourGuide, PrototypeGuide
from paretoda.objectives.parts.table import Factory, make_objective
from paretoda.objectives.segmentation.cbst import Cbst
from paretoda.objectives.segmentation.clan import Clan
from paretoda.objectives.segmentation.fda import FdaEntropy
from paretoda.objectives.segmentation.map_adversary import AdaSegNet, AdvEnt
from paretoda.objectives.segmentation.minent import MinEnt
from paretoda.objectives.segmentation.pixel_cross_entropy import PixelCrossEntropy, pixel_cross_entropy
from paretoda.objectives.segmentation.pixel_objective import AtPixels, at_pixels, pixel_rows
from paretoda.objectives.segmentation.self_training import Dacs, Mic
from paretoda.objectives.target.bnm import Bnm
from paretoda.objectives.target.information import Entropy, Information
from paretoda.objectives.target.mcc import Mcc
from paretoda.objectives.target.tcm import Tcm
from paretoda.objectives.target_labels import TargetLabels
from paretoda.types import Objective

SEGMENTATION_SOURCE_LOSSES: dict[str, Factory] = {"cross-entropy": PixelCrossEntropy}
"""Name -> loss on the labelled source."""

SEGMENTATION_METHODS: dict[str, Factory | None] = {
    "source-only": None,
    "adasegnet": AdaSegNet,
    "minent": MinEnt,
    "advent": AdvEnt,
    "clan": Clan,
    "fda": FdaEntropy,
    "cbst": Cbst,
    "crst": partial(Cbst, mrkld=0.1),
    "cycada": AdaSegNet,  # its image translation belongs to the data
    "swd": at_pixels(Swd),
    "mcd": at_pixels(Mcd),
    "dann": at_pixels(Dann),
    "cdan": at_pixels(Cdan),
    "cdan-e": partial(at_pixels(Cdan), entropy=True),
    "mdd": at_pixels(Mdd),
    "coral": at_pixels(Coral),
}
"""Name -> alignment of the domains; None for no alignment."""

SEGMENTATION_TARGET_LOSSES: dict[str, Factory | None] = {
    "none": None,
    "tcm": partial(at_pixels(Tcm), light=True, width=64, momentum=0.9),  # batches are a few images
    "im": at_pixels(Information, reads_source=False),
    "entropy": at_pixels(Entropy, reads_source=False),
    "mcc": at_pixels(Mcc, reads_source=False),
    "bnm": at_pixels(Bnm, reads_source=False),
    "dacs": Dacs,
    "mic": Mic,
}
"""Name -> loss on the unlabelled target; None for no loss."""

SEGMENTATION_GUIDES: dict[str, Factory] = {
    "tcm": at_pixels(TcmGuide, reads_source=False),
    "im": at_pixels(InformationGuide, reads_source=False),
    "prototypes": at_pixels(PrototypeGuide, reads_source=False),
    "neighbours": at_pixels(NeighbourGuide, reads_source=False),
    "agreement": at_pixels(AgreementGuide, reads_source=False),
}
"""Name -> loss on held-out target images, whose gradient guides the weights."""


PixelLabels = partial(TargetLabels, loss=pixel_cross_entropy)
"""Loss and guide of the few labelled images of the target."""


def make_pixel_method(name: str, *, features: int, classes: int, options: Options | None = None) -> Objective | None:
    """Build the method of that name in `SEGMENTATION_METHODS`, as `paretoda.objectives.make_alignment` does.

    Examples:
        >>> make_pixel_method("minent", features=4, classes=3).strength
        0.001
    """
    return make_objective("method", name, SEGMENTATION_METHODS, {"features": features, "classes": classes}, options)


def make_pixel_target_loss(
    name: str, *, features: int, classes: int, options: Options | None = None
) -> Objective | None:
    """Build the loss of that name in `SEGMENTATION_TARGET_LOSSES`, as `paretoda.objectives.make_target_loss` does.

    Examples:
        >>> make_pixel_target_loss("entropy", features=4, classes=3, options={"most": 100}).most
        100
    """
    return make_objective(
        "target loss", name, SEGMENTATION_TARGET_LOSSES, {"features": features, "classes": classes}, options
    )


def make_pixel_guide(
    name: str, *, features: int, classes: int, target_loss: Objective | None = None, options: Options | None = None
) -> Objective:
    """Build the guide of that name in `SEGMENTATION_GUIDES`, as `paretoda.objectives.make_guide` does.

    A guide that reads the target loss gets the objective behind the pixels.

    Examples:
        >>> make_pixel_guide("neighbours", features=4, classes=3).inner.k
        10
    """
    inner = target_loss.inner if isinstance(target_loss, AtPixels) else target_loss
    given = {"features": features, "classes": classes, "target_loss": inner}
    guide = make_objective("guide", name, SEGMENTATION_GUIDES, given, options)
    assert guide is not None  # no guide in the table is None
    return guide


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
    "Dacs",
    "FdaEntropy",
    "Mic",
    "MinEnt",
    "PixelCrossEntropy",
    "PixelLabels",
    "make_pixel_guide",
    "make_pixel_method",
    "make_pixel_target_loss",
    "pixel_rows",
]
