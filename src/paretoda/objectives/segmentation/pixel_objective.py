"""Objectives of rows at the pixels of maps: a pixel of the features is a sample, its label the nearest one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from paretoda.maps import nearest_labels
from paretoda.types import IGNORE, Domain, Objective, Snapshot, Source, Target

MOST = 4096
"""Pixels of a domain that an objective sees in a step."""

Kind = TypeVar("Kind", bound=Domain)


def pixel_rows(domain: Kind, most: int) -> Kind:
    """Pixels drawn from the maps of a domain, as rows; those of a source that has no label there are left out.

    They are drawn from torch's generator of the CPU, which the training seeds at every step; all where there are fewer.

    Args:
        domain: features (n, d, h, w), logits (n, K, h, w); a source's labels (n, H, W).
        most: largest number of rows.

    Returns:
        A domain of the same kind: features (N, d), logits (N, K), labels (N,), and 0..N-1 as index; without a head,
        which reads a pixel's surroundings.
    """
    size = domain.features.shape[-2:]
    labels = nearest_labels(domain.labels, (size[0], size[1])).flatten() if isinstance(domain, Source) else None
    count = domain.features[:, 0].numel()
    places = torch.arange(count) if labels is None else (labels != IGNORE).nonzero().squeeze(1)
    if len(places) > most:
        places = places[torch.randperm(len(places))[:most].to(places.device)]
    places = places.to(domain.features.device)
    at = (places // size.numel(), places % size.numel() // size[1], places % size[1])
    features, logits = (maps.permute(0, 2, 3, 1)[at] for maps in (domain.features, domain.logits))
    index = torch.arange(len(places), device=places.device)
    rows = replace(domain, features=features, logits=logits, index=index, inputs=None, head=None, further=())
    return rows if labels is None else replace(rows, labels=labels[places])  # type: ignore[call-arg]  # a source has them


class AtPixels(Objective):
    """An objective of rows, shown pixels of maps.

    Forward and private loss draw pixels of their own. A step whose source has no labelled pixel counts for nothing.

    Args:
        inner: what is lowered; reads features, logits and labels only.
        most: largest number of pixels of each domain, 2 or more.
        reads_source: whether it looks at the source; otherwise it is shown an empty one.
    """

    def __init__(self, inner: Objective, *, most: int = MOST, reads_source: bool = True) -> None:
        super().__init__()
        if most < 2:
            raise ValueError(f"most must be 2 or more, got {most}")
        self.inner, self.most, self.reads_source = inner, most, reads_source
        self.encoder_updates = inner.encoder_updates

    @property
    def refreshes(self) -> bool:
        """Whether the inner objective ever looks at whole sets."""
        return self.inner.refreshes

    @property
    def due(self) -> bool:
        """Whether it must look at them now."""
        return self.inner.due

    def forward(self, source: Source, target: Target) -> Tensor:
        """What the inner objective says of the pixels; 0 where the source has none."""
        rows = self._rows(source, target)
        if rows is None:
            return nothing(target.logits) + nothing(target.features)
        loss: Tensor = self.inner(*rows)
        return loss

    def private_loss(self, source: Source, target: Target) -> Tensor | None:
        """The inner objective's; 0 where the source has no pixel."""
        if type(self.inner).private_loss is Objective.private_loss:
            return None
        rows = self._rows(source, target)
        if rows is not None:
            return self.inner.private_loss(*rows)
        own = [nothing(parameter) for parameter in self.inner.parameters()]
        return torch.stack(own).sum() if own else None

    def advance(self, progress: float) -> None:
        """Pass it on."""
        self.inner.advance(progress)

    def refresh(self, snapshot: Snapshot) -> None:
        """Pass it on: a snapshot holds rows already."""
        self.inner.refresh(snapshot)

    def extra_repr(self) -> str:
        """Settings."""
        return f"most={self.most}"

    def _rows(self, source: Source, target: Target) -> tuple[Source, Target] | None:
        if not self.reads_source:
            return pixel_rows(source, 0), pixel_rows(target, self.most)
        rows = pixel_rows(source, self.most)
        return (rows, pixel_rows(target, self.most)) if len(rows.features) else None


def nothing(tensor: Tensor) -> Tensor:
    """0, with a gradient of zeros for the tensor: never not-a-number, whatever is in it."""
    return tensor.flatten()[:0].sum()


def at_pixels(factory: Callable[..., Objective], *, reads_source: bool = True) -> Callable[..., Objective]:
    """A factory of the same objective at pixels, with the same options, and `most`, and the same description.

    Args:
        factory: the class of an objective of rows.
        reads_source: see `AtPixels`.
    """

    def make(*, most: int = MOST, **given: object) -> Objective:
        return AtPixels(factory(**given), most=most, reads_source=reads_source)

    signature = inspect.signature(factory)
    extra = inspect.Parameter("most", inspect.Parameter.KEYWORD_ONLY, default=MOST)
    make.__signature__ = signature.replace(parameters=[*signature.parameters.values(), extra])  # type: ignore[attr-defined]
    make.__doc__ = factory.__doc__
    return make
