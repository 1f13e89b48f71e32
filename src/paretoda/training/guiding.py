"""What the guide sees: held-out target samples, which nothing learns from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from paretoda.domains import Batch, Target
from paretoda.models.batchnorm import held_out
from paretoda.models.spread import spread
from paretoda.training.spreading import joined_rows, shares_of

if TYPE_CHECKING:
    from paretoda.training.step import Step


def held_out_domain(step: Step, batch: Batch) -> Target:
    """The held-out samples of the batch as the network sees them now; with several processes those of all."""
    if batch.guide is None or batch.guide_index is None:
        raise ValueError("the scheme follows a guide, but the batch has no held-out target samples")
    shares = shares_of(step, len(batch.guide))
    with spread(step.model.encoder, shares):
        features = _features(step, batch.guide)
    features = features if shares is None else shares.joined(features)
    (index,) = joined_rows(shares, (batch.guide_index, 0))
    return Target(features, step.model.head(features), index, batch.guide)


def _features(step: Step, inputs: Tensor) -> Tensor:
    """Where only the last layer votes, the guide's body needs no graph."""
    encoder = step.model.encoder
    if step.voting == "last" and isinstance(encoder, nn.Sequential) and len(encoder) > 1:
        with torch.no_grad():
            below = held_out(encoder[:-1], inputs)
        return held_out(encoder[-1], below)
    return held_out(encoder, inputs)
