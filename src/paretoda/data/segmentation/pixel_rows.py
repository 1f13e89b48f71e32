"""Pixels of whole sets of images as rows of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import overload

import torch
from torch import Tensor

from paretoda.data.pair import Forward
from paretoda.maps import resize_labels
from paretoda.types import IGNORE, Source, Target


@overload
def sample_pixels(
    forward: Forward, batches: Iterable[Tensor], labels: Iterable[Tensor], *, per_image: int = 64, seed: int = 0
) -> Source: ...
@overload
def sample_pixels(
    forward: Forward, batches: Iterable[Tensor], labels: None = None, *, per_image: int = 64, seed: int = 0
) -> Target: ...
def sample_pixels(
    forward: Forward,
    batches: Iterable[Tensor],
    labels: Iterable[Tensor] | None = None,
    *,
    per_image: int = 64,
    seed: int = 0,
) -> Source | Target:
    """Return random pixels of every image of a set as rows of a `Snapshot`, at the resolution of the features.

    The same pixels are drawn for every model with maps of this size, whatever the size of the batches.

    Args:
        forward: Inputs -> feature maps (b, d, h, w) and logit maps (b, K, h, w) of a model in evaluation mode.
        batches: Inputs of the set in its order, shape (b, ...) each.
        labels: Label maps of the source, shape (b, H, W) each, along with the batches; pixels without a label are left
            out. None for a target.
        per_image: Number of pixels of an image; all where it has fewer.
        seed: Seed of the choice.

    Returns:
        Features (N, d), logits (N, K), the source's labels (N,), and 0..N-1 as index, image by image, on the CPU.

    Raises:
        ValueError: There is no image, or none with a label.
    """
    generator = torch.Generator().manual_seed(seed)
    pairs = zip(batches, repeat(None)) if labels is None else zip(batches, labels, strict=True)
    rows: list[tuple[Tensor, ...]] = []
    for inputs, truth in pairs:
        features, logits = forward(inputs)
        image, place, own = _draw_pixels(truth, features, per_image, generator)
        rows.append((*(maps.flatten(2).cpu()[image, :, place] for maps in (features, logits)), own))
    if not sum(len(part[0]) for part in rows):
        raise ValueError("there is no pixel to look at: no image was given, or none has a label")
    features, logits, found = (torch.cat(part) for part in zip(*rows, strict=True))
    index = torch.arange(len(features))
    return Target(features, logits, index) if labels is None else Source(features, logits, index, labels=found)


def _draw_pixels(
    truth: Tensor | None, maps: Tensor, per_image: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Return image, place and label (0 where there are none), each (N,), of pixels drawn in every map (n, d, h, w)."""
    count, _, height, width = maps.shape
    labels = torch.zeros(count, height * width, dtype=torch.int64)
    if truth is not None:
        labels = resize_labels(truth.cpu(), (height, width)).long().flatten(1)
    places = []
    for own in labels != IGNORE:
        valid = own.nonzero().squeeze(1)
        places.append(valid[torch.randperm(len(valid), generator=generator)[:per_image]])
    image = torch.arange(count).repeat_interleave(torch.tensor([len(own) for own in places]))
    place = torch.cat(places)
    return image, place, labels[image, place]
