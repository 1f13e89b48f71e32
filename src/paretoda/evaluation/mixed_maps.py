"""MixVal for maps: where two target images lie over each other, a pixel should be predicted as in the stronger one."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from paretoda.domains import Model


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
