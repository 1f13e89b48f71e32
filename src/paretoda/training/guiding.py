"""What the guide sees: held-out target samples, which nothing learns from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paretoda.domains import Batch, Target
from paretoda.models.spread import spread
from paretoda.training.encoding import Pass
from paretoda.training.spreading import joined_rows, shares_of

if TYPE_CHECKING:
    from paretoda.training.step import Step


def held_out_domain(step: Step, batch: Batch) -> tuple[Target, Pass]:
    """The held-out samples of the batch as the network sees them now, with several processes those of all; its pass."""
    if batch.guide is None or batch.guide_index is None:
        raise ValueError("the scheme follows a guide, but the batch has no held-out target samples")
    shares = shares_of(step, len(batch.guide))
    with spread(step.model.encoder, shares):
        features, made = step.encoding.held_out(batch.guide, len(batch.target))
    if shares is not None:
        features = made = shares.joined(features)
    (index,) = joined_rows(shares, (batch.guide_index, 0))
    return Target(features, step.model.head(features), index, batch.guide), made
