"""Features of a batch's domains, in one piece or in micro-batches, and what a backward pass needs of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from paretoda.domains import Batch
from paretoda.gradients import MicroBatches
from paretoda.models.batchnorm import encode, held_out
from paretoda.processes import Shares

Pass: TypeAlias = Tensor | MicroBatches
"""One forward pass through the encoder: its features, or the micro-batches that make them again."""


@dataclass(frozen=True, eq=False)
class Encoding:
    """How an encoder is run.

    Args:
        encoder: inputs to features.
        bn: which inputs are one batch to BatchNorm.
        last: only the last layer votes, so that the guide's body needs no graph.
        parts: micro-batches of a batch.
    """

    encoder: nn.Module
    bn: Literal["joint", "per-domain"]
    last: bool
    parts: int

    def domains(self, batch: Batch, shares: Shares | None) -> tuple[Tensor, Tensor, list[Pass]]:
        """The features of source and target, and the passes that made them.

        Args:
            batch: of this process.
            shares: how both domains are spread over several processes; not with micro-batches.
        """
        if self.parts == 1:
            source, target = encode(self.encoder, batch.source, batch.target, bn=self.bn, shares=shares)
            return source, target, [source, target]
        if self.bn == "joint":
            both = self._parts(batch.source, batch.target)
            source, target = both.split()
            return source, target, [both]
        own, other = self._parts(batch.source, remember=False), self._parts(batch.target)
        return own.features, other.features, [own, other]

    def held_out(self, inputs: Tensor, batch_size: int) -> tuple[Tensor, Pass]:
        """The features of held-out inputs, and the pass that made them; BatchNorm remembers nothing of it.

        Args:
            inputs: of the guide.
            batch_size: of a domain: the guide's micro-batches have no more rows than its.
        """
        if self.parts > 1:
            rows = max(1, batch_size // self.parts)
            parts = min(-(-len(inputs) // rows), max(1, len(inputs) // min(2, rows)))  # one row has no variance
            found = MicroBatches(self.encoder, inputs, parts, remember=False, keep_last=self.last)
            return found.features, found
        features = self._held_out(inputs)
        return features, features

    def _held_out(self, inputs: Tensor) -> Tensor:
        if self.last and isinstance(self.encoder, nn.Sequential) and len(self.encoder) > 1:
            with torch.no_grad():
                below = held_out(self.encoder[:-1], inputs)
            return held_out(self.encoder[-1], below)
        return held_out(self.encoder, inputs)

    def _parts(self, *inputs: Tensor, remember: bool = True) -> MicroBatches:
        return MicroBatches(self.encoder, inputs, self.parts, remember=remember, keep_last=self.last)
