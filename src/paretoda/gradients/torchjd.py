"""Exchange with TorchJD: our schemes in its `backward`, and its weightings in ours; needs the extra `baselines`."""

# Imports inside functions: TorchJD is an extra.
# ruff: noqa: PLC0415

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from paretoda.core.problem import AheadScheme, GuideMissingError, Move, Problem, Scheme, Vector, Weights, reads_guide
from paretoda.core.problem import Guide as GuideDots
from paretoda.schemes import DWA, EPO, FAMO, PMTL, STCH, GradNorm, Uncertainty

if TYPE_CHECKING:
    from torchjd.aggregation import Aggregator, GramianWeightedAggregator, Weighting

READ_LOSSES = (DWA, EPO, FAMO, GradNorm, PMTL, STCH, Uncertainty)
"""Schemes that read the values of the losses, which TorchJD does not pass on."""


def to_torchjd(scheme: Scheme, *, guide: int | None = None) -> GramianWeightedAggregator:
    """Return the scheme as an aggregator of TorchJD; `.grad` becomes what `paretoda.backward` would write.

    TorchJD's autogram takes its `.gramian_weighting`.

    Args:
        scheme: Scheme that needs no loss values; it sees the Gramian only.
        guide: Row of the Jacobian that is the guide's, for a scheme that follows one (-1: the last loss that
            `torchjd.autojac.backward` was given). Its own weight is 0.

    Raises:
        ValueError: The scheme reads losses, or follows no guide although one is given.
        GuideMissingError: The scheme needs a guide.
        ImportError: TorchJD is not installed.
    """
    aggregation = _torchjd()
    core = scheme
    while hasattr(core, "scheme"):  # what Averaged and Every are wrapped around
        core = core.scheme
    if _reads_losses(core):
        raise ValueError(f"{core} reads the losses, and TorchJD does not hand them on: use paretoda.backward")
    if guide is None and getattr(scheme, "guided", False):
        raise GuideMissingError(
            f"{type(core).__name__} needs a guide: say which row of the Jacobian is the held-out loss's, guide=-1 for "
            "the last, or use paretoda.backward"
        )
    if guide is not None and not reads_guide(scheme):
        raise ValueError(f"{type(core).__name__} follows no guide: leave out guide={guide}")

    class SchemeWeighting(aggregation.Weighting):  # type: ignore[name-defined,misc]
        """The weights m·alpha of a scheme for a Gramian, shape (m, m) or with the guide (m + 1, m + 1)."""

        def forward(self, gramian: Tensor, /) -> Tensor:
            table = gramian.detach().to("cpu", torch.float64).numpy()
            return torch.as_tensor(_weights(scheme, table, guide), dtype=gramian.dtype, device=gramian.device)

        def extra_repr(self) -> str:
            return repr(scheme) if guide is None else f"{scheme!r}, guide={guide}"

    aggregator: GramianWeightedAggregator = aggregation.GramianWeightedAggregator(SchemeWeighting())
    return aggregator


def from_torchjd(weighting: Weighting[Any] | Aggregator) -> Scheme:
    """Return TorchJD's weighting as a scheme: `paretoda.backward` then writes Σ w_i g_i, as TorchJD would.

    Args:
        weighting: Weighting that reads the Gramian, such as `UPGradWeighting()`, or the aggregator of one, `UPGrad()`.

    Raises:
        TypeError: It is not a weighting, or reads more than the Gramian.
        ImportError: TorchJD is not installed.
    """
    aggregation = _torchjd()
    read: Any = weighting
    if isinstance(weighting, aggregation.Aggregator):
        read = getattr(weighting, "gramian_weighting", None)
    elif not isinstance(weighting, aggregation.Weighting):
        raise TypeError(f"from_torchjd takes a TorchJD weighting or aggregator, not {type(weighting).__name__}")
    whole = (aggregation.ExcessMTLWeighting, aggregation.MoDoWeighting, aggregation.SDMGradWeighting)
    if read is None or any(isinstance(part, whole) for part in read.modules()):
        raise TypeError(
            f"a scheme sees inner products only, and TorchJD's {type(weighting).__name__} is not made for them: "
            "give a weighting that reads Gramians, such as UPGradWeighting()"
        )
    return TorchJD(read)


@dataclass(frozen=True)
class TorchJD:
    """Weighting of TorchJD as a scheme; made by `from_torchjd`.

    Args:
        weighting: Weighting that maps the Gramian to w, shape (m,); alpha is w / m.
    """

    weighting: Weighting[Any]
    guided: ClassVar[bool] = False

    def __call__(self, problem: Problem, /) -> Weights:
        """Return the weights of this step."""
        with torch.no_grad():
            found = self.weighting(torch.tensor(problem.gram))
        return Weights(found.numpy() / problem.size, Move.COMBINED)


def _reads_losses(scheme: Scheme) -> bool:
    return isinstance(scheme, READ_LOSSES) or getattr(scheme, "normalise", "none") in ("loss", "loss+")


def _weights(scheme: Scheme, table: np.ndarray[Any, Any], guide: int | None) -> Vector:
    """Factor of every row of the Jacobian: m·alpha, and 0 for the guide's."""
    rows = np.arange(len(table))
    dots = None
    if guide is not None:
        if not -len(rows) <= guide < len(rows):
            raise ValueError(f"guide={guide} is no row of a Jacobian with {len(rows)} rows")
        own = rows[guide]
        rows = np.delete(rows, own)
        dots = GuideDots(table[rows, own], float(table[own, own]))
    weights = np.zeros(len(table))
    ones = np.ones(len(rows))
    chosen = scheme.ahead(ones) if isinstance(scheme, AheadScheme) else None
    if chosen is None:
        chosen = scheme(Problem(table[np.ix_(rows, rows)], ones, dots))
    weights[rows] = len(rows) * chosen.alpha
    return weights


def _torchjd() -> ModuleType:
    try:
        from torchjd import aggregation
    except ImportError as error:
        raise ImportError('the exchange with TorchJD needs TorchJD: pip install "paretoda[baselines]"') from error
    return aggregation
