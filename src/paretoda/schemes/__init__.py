"""Schemes: rules that choose the weights of the losses at every step. One file is one scheme; this is their table."""

from __future__ import annotations

from collections.abc import Callable

from paretoda.core.options import unknown
from paretoda.core.problem import Scheme
from paretoda.schemes.aligned_mtl import AlignedMTL
from paretoda.schemes.cagrad import CAGrad
from paretoda.schemes.calibrated import Calibrated
from paretoda.schemes.dwa import DWA
from paretoda.schemes.epo import EPO
from paretoda.schemes.fairgrad import FairGrad
from paretoda.schemes.famo import FAMO
from paretoda.schemes.gradient_harmonisation import GradientHarmonisation
from paretoda.schemes.gradnorm import GradNorm
from paretoda.schemes.gradvac import GradVac
from paretoda.schemes.imtl_g import IMTLG
from paretoda.schemes.linear import Linear
from paretoda.schemes.mgda import MGDA
from paretoda.schemes.nash_mtl import NashMTL
from paretoda.schemes.paretoda import ParetoDA
from paretoda.schemes.paretoda_paper import ParetoPaper
from paretoda.schemes.paretoda_released import ParetoReleased
from paretoda.schemes.pcgrad import PCGrad
from paretoda.schemes.pmtl import PMTL
from paretoda.schemes.random_weights import RandomWeights
from paretoda.schemes.stch import STCH
from paretoda.schemes.uncertainty import Uncertainty
from paretoda.schemes.upgrad import UPGrad
from paretoda.schemes.wrappers import Averaged, Every

SCHEMES: dict[str, Callable[[], Scheme]] = {
    "linear": Linear,
    "mgda": MGDA,
    "epo": EPO,
    "pmtl": PMTL,
    "paretoda-paper": ParetoPaper,
    "paretoda-released": ParetoReleased,
    "paretoda": ParetoDA,
    "gradnorm": GradNorm,
    "dwa": DWA,
    "uncertainty": Uncertainty,
    "pcgrad": PCGrad,
    "cagrad": CAGrad,
    "imtl-g": IMTLG,
    "nash-mtl": NashMTL,
    "aligned-mtl": AlignedMTL,
    "upgrad": UPGrad,
    "famo": FAMO,
    "gradvac": GradVac,
    "fairgrad": FairGrad,
    "stch": STCH,
    "gh++": GradientHarmonisation,
    "random": RandomWeights,
}
"""Name -> scheme; each can be built without arguments."""

WRAPPERS: dict[str, Callable[[Scheme], Scheme]] = {"every": Every, "averaged": Averaged, "calibrated": Calibrated}
"""Name -> scheme around another scheme."""


def make_scheme(name: str) -> Scheme:
    """Build the scheme of that name with its default settings.

    Args:
        name: Name in `SCHEMES`.

    Raises:
        ValueError: The name is unknown.

    Examples:
        >>> make_scheme("mgda")
        MGDA(normalise='none')
    """
    if name not in SCHEMES:
        raise ValueError(unknown("scheme", name, SCHEMES))
    return SCHEMES[name]()


__all__ = [
    "DWA",
    "EPO",
    "FAMO",
    "IMTLG",
    "MGDA",
    "PMTL",
    "SCHEMES",
    "STCH",
    "WRAPPERS",
    "AlignedMTL",
    "Averaged",
    "CAGrad",
    "Calibrated",
    "Every",
    "FairGrad",
    "GradNorm",
    "GradVac",
    "GradientHarmonisation",
    "Linear",
    "NashMTL",
    "PCGrad",
    "ParetoDA",
    "ParetoPaper",
    "ParetoReleased",
    "RandomWeights",
    "UPGrad",
    "Uncertainty",
    "make_scheme",
]
