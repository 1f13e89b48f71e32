"""MixVal: a mixture of two target samples should be predicted as its larger part (Hu et al., 2023)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from paretoda.evaluation.predictions import evaluation_mode
from paretoda.evaluation.validators.validator import draw
from paretoda.types import Model, Snapshot


def mixed_maps(model: Model, batches: Iterable[Tensor], *, share: float, images: int) -> float:
    """The mean of the consistencies at pixels where two images were predicted differently, and alike; see `MixVal`.

    Every image is mixed with the next one of its batch, the last one with the first.

    Args:
        model: inputs -> logits (n, K, h, w), in evaluation mode.
        batches: inputs, (b, ...) each, where the model is.
        share: of the first image in a mixture.
        images: at most so many.

    Returns:
        In 0..1; pixels that differ nowhere count as 0, and pixels that agree nowhere do not count.
    """
    right = torch.zeros(2, dtype=torch.float64)
    counted = torch.zeros(2, dtype=torch.float64)
    seen = 0
    for batch in batches:
        if seen >= images:
            break
        inputs = batch[: images - seen]
        seen += len(inputs)
        if len(inputs) < 2:
            continue
        labels = model(inputs).argmax(dim=1)
        other = labels.roll(-1, 0)
        found = model(share * inputs + (1 - share) * inputs.roll(-1, 0)).argmax(dim=1) == labels
        for kind, pixels in enumerate((labels != other, labels == other)):
            right[kind] += float((found & pixels).sum())
            counted[kind] += float(pixels.sum())
    across, within = (float(found) for found in right / counted.clamp(min=1))
    return across if not counted[1] else (across + within) / 2


_BATCH = 128
_IMAGES = 64
"""In segmentation every image has thousands of pixels."""


def partners(labels: Tensor, same: bool) -> tuple[Tensor, Tensor]:
    """For every sample the next one, round the circle, of the same or of another class: two lists of positions.

    Args:
        labels: predicted classes, shape (n,).
        same: of the same class, or of another; samples without a partner are left out.
    """
    n = len(labels)
    rows = torch.arange(n)
    others = (rows[:, None] + torch.arange(1, n)) % n
    fits = (labels[others] == labels[:, None]) == same
    found = fits.any(dim=1)
    if not found.any():
        return rows[:0], rows[:0]
    first = fits[found].byte().argmax(dim=1)
    return rows[found], others[found, first]


def consistency(model: Model, inputs: Tensor, labels: Tensor, *, same: bool, share: float = 0.55) -> float | None:
    """How often share · a + (1 - share) · b is predicted as a was, over the pairs of `partners`; None without a pair.

    Args:
        model: in evaluation mode.
        inputs: shape (n, ...).
        labels: predicted classes of the inputs, shape (n,).
        same: mix within a predicted class, or across two.
        share: of the first sample.
    """
    first, second = partners(labels, same)
    right = 0
    device = next((p.device for p in model.parameters()), inputs.device)
    for start in range(0, len(first), _BATCH):
        a, b = first[start : start + _BATCH], second[start : start + _BATCH]
        mixed = share * inputs[a] + (1 - share) * inputs[b]
        right += int((model(mixed.to(device)).argmax(dim=1).cpu() == labels[a]).sum())
    return right / len(first) if len(first) else None


def gather(batches: Iterable[Tensor], positions: Tensor) -> Tensor:
    """The inputs at these positions of the set, in this order.

    Args:
        batches: all inputs of the set, in its order.
        positions: shape (n,).
    """
    place = {position: i for i, position in enumerate(positions.tolist())}
    rows: list[Tensor | None] = [None] * len(place)
    start = 0
    for batch in batches:
        for i in range(start, start + len(batch)):
            if i in place:
                rows[place[i]] = batch[i - start].cpu().clone()  # a view would keep the whole batch
        start += len(batch)
    found = [row for row in rows if row is not None]
    if len(found) < len(place):
        raise ValueError(f"target_inputs gave {start} samples, fewer than the snapshot's target has")
    return torch.stack(found)


@dataclass(frozen=True)
class MixVal:
    """The mean of the consistencies across and within predicted classes.

    Where all samples are predicted alike there is nothing to mix across, which counts as 0: a collapsed model gets at
    most 1/2. Where no class is predicted twice, the mixtures across classes count alone. One sample scores 0.

    Args:
        share: of the first sample in a mixture.
        samples: of the target, at most; all checkpoints are tried on the same ones.
        megabytes: at most so much memory for their inputs; larger inputs, fewer samples.
        seed: of their choice and of the pairs.
    """

    share: float = 0.55
    samples: int = 1024
    megabytes: int = 256
    seed: int = 0

    def __call__(self, snapshot: Snapshot) -> float:
        """In 0..1."""
        batches = snapshot.target_inputs()
        first = next(batches)
        if snapshot.model.makes_maps:
            with evaluation_mode(snapshot.model):
                return mixed_maps(snapshot.model, chain([first], batches), share=self.share, images=_IMAGES)
        fitting = self.megabytes * 2**20 // max(1, first[0].numel() * first.element_size())
        chosen = draw(snapshot.target.index, max(2, min(self.samples, fitting)), self.seed)
        inputs = gather(chain([first], batches), chosen)
        labels = snapshot.target.logits.cpu()[chosen].argmax(dim=1)
        with evaluation_mode(snapshot.model):
            across = consistency(snapshot.model, inputs, labels, same=False, share=self.share)
            within = consistency(snapshot.model, inputs, labels, same=True, share=self.share)
        return (across or 0.0) if within is None else ((across or 0.0) + within) / 2
