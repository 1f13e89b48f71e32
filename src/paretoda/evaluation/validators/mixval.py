"""MixVal: a mixture of two target samples should be predicted as its larger part (Hu et al., 2023)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from paretoda.domains import Model, Snapshot
from paretoda.evaluation.mixed_maps import mixed_maps
from paretoda.evaluation.predictions import evaluation_mode
from paretoda.evaluation.validators.sampling import draw

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
