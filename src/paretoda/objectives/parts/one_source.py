"""An objective of one of several sources: it sees the samples of its own source, and the target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from torch import Tensor

from paretoda.objectives.parts.step_cache import StepCache
from paretoda.types import Objective, Snapshot, Source, Target


class OneSource(Objective):
    """The objective on one of several sources and the target; any objective can be wrapped.

    Args:
        objective: The objective; it is this source's alone, with its own networks.
        number: Number of the source, from 0.

    Examples:
        >>> import torch
        >>> from paretoda.objectives import CrossEntropy
        >>> index = torch.arange(4)
        >>> logits = torch.tensor([[9.0, 0.0], [0.0, 0.0], [9.0, 0.0], [0.0, 0.0]])
        >>> both = Source(torch.zeros(4, 2), logits, index, labels=0 * index, domain=index % 2)
        >>> first, second = (OneSource(CrossEntropy(2, 2), number) for number in range(2))
        >>> round(first(both, None).item(), 2), round(second(both, None).item(), 2)  # log 2
        (0.0, 0.69)
    """

    def __init__(self, objective: Objective, number: int) -> None:
        super().__init__()
        self.objective, self.number = objective, number
        self.encoder_updates, self.common = objective.encoder_updates, objective.common
        self._cache: StepCache[Source] = StepCache()

    @property
    def offset(self) -> float:
        """Offset of the objective."""
        return self.objective.offset

    @property
    def refreshes(self) -> bool:
        """Whether the objective uses `refresh`."""
        return self.objective.refreshes

    @property
    def refresh_due(self) -> bool:
        """Whether the objective needs a refresh now."""
        return self.objective.refresh_due

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the loss on the samples of the source."""
        loss: Tensor = self.objective(self._cache.keep(source, source.of(self.number)), target)
        return loss

    def private_loss(self, source: Source, target: Target) -> Tensor | None:
        """Return the private loss on the samples of the source."""
        own = self._cache.take(source)
        return self.objective.private_loss(source.of(self.number) if own is None else own, target)

    def advance(self, progress: float) -> None:
        """Advance the objective."""
        self.objective.advance(progress)

    def refresh(self, snapshot: Snapshot) -> None:
        """Refresh the objective by the source's part of the snapshot."""
        own, held_out = snapshot.source.of(self.number), snapshot.held_out_source.of(self.number)
        inputs = None if snapshot.source_inputs is None else partial(_inputs_of, snapshot, self.number)
        self.objective.refresh(replace(snapshot, source=own, held_out_source=held_out, source_inputs=inputs))

    def extra_repr(self) -> str:
        """Return the number of the source."""
        return f"number={self.number}"


def _inputs_of(snapshot: Snapshot, number: int) -> Iterator[Tensor]:
    """Yield the inputs of one source, in batches, in the order of its samples."""
    assert snapshot.source_inputs is not None  # `refresh` asks
    domain, start = snapshot.source.domain, 0
    for inputs in snapshot.source_inputs():
        end = start + len(inputs)
        yield inputs if domain is None else inputs[(domain[start:end] == number).to(inputs.device)]
        start = end
