"""MixVal: a mixture of two target samples should be predicted as its larger part (Hu et al., 2023)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from paretoda.evaluation.predictions import evaluation_mode
from paretoda.evaluation.validators.validator import draw_samples
from paretoda.types import Model, Snapshot

_BATCH = 128
_IMAGES = 64
"""Number of images with pixel labels; each has thousands of pixels."""


def map_consistency(model: Model, batches: Iterable[Tensor], *, share: float, images: int) -> float:
    """Mean of the consistencies at pixels where two images were predicted differently, and alike; see `MixVal`.

    Every image is mixed with the next one of its batch, the last one with the first.

    Args:
        model: Model from inputs to logits (n, K, h, w), in evaluation mode.
        batches: Inputs, (b, ...) each, on the device of the model.
        share: Share of the first image in a mixture.
        images: Largest number of images.

    Returns:
        A number in 0..1; if no pixels differ, they count as 0, and if no pixels agree, they do not count.
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


def find_partners(labels: Tensor, same: bool) -> tuple[Tensor, Tensor]:
    """For every sample the next one, cyclically, of the same or of another class: two lists of positions.

    Args:
        labels: Predicted classes, shape (n,).
        same: Whether partners have the same class or another; samples without a partner are left out.
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
    """Share of the mixtures share · a + (1 - share) · b that are predicted as a was, over the pairs of `find_partners`.

    Args:
        model: Model in evaluation mode.
        inputs: Inputs, shape (n, ...).
        labels: Predicted classes of the inputs, shape (n,).
        same: Mix within a predicted class, or across two.
        share: Share of the first sample.

    Returns:
        The share; None without a pair.
    """
    first, second = find_partners(labels, same)
    right = 0
    device = next((p.device for p in model.parameters()), inputs.device)
    for start in range(0, len(first), _BATCH):
        a, b = first[start : start + _BATCH], second[start : start + _BATCH]
        mixed = share * inputs[a] + (1 - share) * inputs[b]
        right += int((model(mixed.to(device)).argmax(dim=1).cpu() == labels[a]).sum())
    return right / len(first) if len(first) else None


def gather_inputs(batches: Iterable[Tensor], positions: Tensor) -> Tensor:
    """Return the inputs at these positions of the set, in this order.

    Args:
        batches: All inputs of the set, in its order.
        positions: Positions, shape (n,).

    Raises:
        ValueError: There are fewer inputs than positions.
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
    """Mean of the consistencies across and within predicted classes.

    If all samples are predicted alike there is nothing to mix across, which counts as 0: a collapsed model gets at most
    1/2. If no class is predicted twice, the mixtures across classes count alone. One sample scores 0.

    Args:
        share: Share of the first sample in a mixture.
        samples: Largest number of target samples; all checkpoints are tried on the same ones.
        megabytes: Largest memory for their inputs; with larger inputs there are fewer samples.
        seed: Seed of their choice and of the pairs.

    Examples:
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Target
        >>> inputs = torch.eye(2).repeat(4, 1)
        >>> model = Model(torch.nn.Identity(), torch.nn.Identity())  # predicts the larger coordinate
        >>> target = Target(inputs, inputs, torch.arange(8))
        >>> MixVal()(SimpleNamespace(target=target, model=model, target_inputs=lambda: iter([inputs])))
        1.0
    """

    share: float = 0.55
    samples: int = 1024
    megabytes: int = 256
    seed: int = 0

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, in 0..1."""
        batches = snapshot.target_inputs()
        first = next(batches)
        if snapshot.model.predicts_pixels:
            with evaluation_mode(snapshot.model):
                return map_consistency(snapshot.model, chain([first], batches), share=self.share, images=_IMAGES)
        fitting = self.megabytes * 2**20 // max(1, first[0].numel() * first.element_size())
        chosen = draw_samples(snapshot.target.index, max(2, min(self.samples, fitting)), self.seed)
        inputs = gather_inputs(chain([first], batches), chosen)
        labels = snapshot.target.logits.cpu()[chosen].argmax(dim=1)
        with evaluation_mode(snapshot.model):
            across = consistency(snapshot.model, inputs, labels, same=False, share=self.share)
            within = consistency(snapshot.model, inputs, labels, same=True, share=self.share)
        return (across or 0.0) if within is None else ((across or 0.0) + within) / 2
