"""Objectives of rows at the pixels of maps: a pixel of the features is a sample, and its label is the nearest one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from paretoda.maps import resize_labels
from paretoda.types import IGNORE, Domain, Objective, Snapshot, Source, Target

MAX_PIXELS = 4096
"""Number of pixels of a domain that an objective sees in a step."""

Kind = TypeVar("Kind", bound=Domain)


def pixel_rows(domain: Kind, most: int) -> Kind:
    """Draw pixels from the maps of a domain, as rows; source pixels without a label are left out.

    They are drawn from torch's CPU generator, which the training seeds at every step; all pixels are taken if there are
    fewer than `most`.

    Args:
        domain: Domain with features (n, d, h, w) and logits (n, K, h, w); a source has labels (n, H, W).
        most: Largest number of rows.

    Returns:
        A domain of the same kind with features (N, d), logits (N, K), labels (N,) and the index 0..N-1, without a head,
        because a head reads the surroundings of a pixel.

    Examples:
        >>> target = Target(torch.randn(2, 4, 8, 8), torch.randn(2, 3, 8, 8), torch.arange(2))
        >>> pixel_rows(target, most=10).features.shape
        torch.Size([10, 4])
    """
    size = domain.features.shape[-2:]
    labels = resize_labels(domain.labels, (size[0], size[1])).flatten() if isinstance(domain, Source) else None
    count = domain.features[:, 0].numel()
    places = torch.arange(count) if labels is None else (labels != IGNORE).nonzero().squeeze(1)
    if len(places) > most:
        places = places[torch.randperm(len(places))[:most].to(places.device)]
    places = places.to(domain.features.device)
    at = (places // size.numel(), places % size.numel() // size[1], places % size[1])
    features, logits = (maps.permute(0, 2, 3, 1)[at] for maps in (domain.features, domain.logits))
    index = torch.arange(len(places), device=places.device)
    rows = replace(domain, features=features, logits=logits, index=index, inputs=None, head=None, extra_logits=())
    return rows if labels is None else replace(rows, labels=labels[places])  # type: ignore[call-arg]  # a source has them


class AtPixels(Objective):
    """Apply an objective of rows to pixels of maps.

    `forward` and `private_loss` draw their own pixels. A step whose source has no labelled pixel does not count.

    Args:
        inner: Objective that reads features, logits and labels only.
        most: Largest number of pixels of each domain, 2 or more.
        reads_source: Whether the objective reads the source; otherwise it gets an empty one.

    Raises:
        ValueError: `most` is below 2.

    Examples:
        >>> from paretoda.objectives import Entropy
        >>> target = Target(torch.zeros(1, 4, 8, 8), torch.zeros(1, 2, 8, 8), torch.arange(1))
        >>> source = Source(target.features, target.logits, target.index, labels=torch.zeros(1, 8, 8, dtype=torch.long))
        >>> round(AtPixels(Entropy(features=4, classes=2), most=16)(source, target).item(), 4)
        0.6931
    """

    def __init__(self, inner: Objective, *, most: int = MAX_PIXELS, reads_source: bool = True) -> None:
        super().__init__()
        if most < 2:
            raise ValueError(f"most must be 2 or more, got {most}")
        self.inner, self.most, self.reads_source = inner, most, reads_source
        self.encoder_updates = inner.encoder_updates

    @property
    def refreshes(self) -> bool:
        """Whether the inner objective uses `refresh`."""
        return self.inner.refreshes

    @property
    def refresh_due(self) -> bool:
        """Whether the inner objective needs a refresh now."""
        return self.inner.refresh_due

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the inner objective of the pixels; 0 where the source has none."""
        rows = self._rows(source, target)
        if rows is None:
            return zero_loss(target.logits) + zero_loss(target.features)
        loss: Tensor = self.inner(*rows)
        return loss

    def private_loss(self, source: Source, target: Target) -> Tensor | None:
        """Return the inner objective's private loss; 0 where the source has no pixel."""
        if type(self.inner).private_loss is Objective.private_loss:
            return None
        rows = self._rows(source, target)
        if rows is not None:
            return self.inner.private_loss(*rows)
        own = [zero_loss(parameter) for parameter in self.inner.parameters()]
        return torch.stack(own).sum() if own else None

    def advance(self, progress: float) -> None:
        """Advance the inner objective."""
        self.inner.advance(progress)

    def refresh(self, snapshot: Snapshot) -> None:
        """Refresh the inner objective: a snapshot already holds rows."""
        self.inner.refresh(snapshot)

    @property
    def offset(self) -> float:
        """Offset of the inner objective."""
        return self.inner.offset

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"most={self.most}"

    def _rows(self, source: Source, target: Target) -> tuple[Source, Target] | None:
        if not self.reads_source:
            return pixel_rows(source, 0), pixel_rows(target, self.most)
        rows = pixel_rows(source, self.most)
        return (rows, pixel_rows(target, self.most)) if len(rows.features) else None


def zero_loss(tensor: Tensor) -> Tensor:
    """0 with a zero gradient for the tensor; never NaN, whatever the tensor contains."""
    return tensor.flatten()[:0].sum()


def at_pixels(factory: Callable[..., Objective], *, reads_source: bool = True) -> Callable[..., Objective]:
    """Return a factory of the same objective at pixels, with the same options plus `most`, and the same description.

    Args:
        factory: Class of an objective of rows.
        reads_source: See `AtPixels`.
    """

    def make(*, most: int = MAX_PIXELS, **given: object) -> Objective:
        return AtPixels(factory(**given), most=most, reads_source=reads_source)

    signature = inspect.signature(factory)
    extra = inspect.Parameter("most", inspect.Parameter.KEYWORD_ONLY, default=MAX_PIXELS)
    make.__signature__ = signature.replace(parameters=[*signature.parameters.values(), extra])  # type: ignore[attr-defined]
    make.__doc__ = factory.__doc__
    return make
