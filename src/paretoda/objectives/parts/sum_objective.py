"""Sum of several objectives as one: a published method with the strengths that its authors gave its parts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from paretoda.types import Objective, Snapshot, Source, Target


class SumObjective(Objective):
    """Sum of objectives, which a scheme then weighs as one against the others.

    Args:
        parts: Objectives that are added; the encoder lowers each once per step.

    Raises:
        ValueError: The encoder lowers a part several times per step.

    Examples:
        >>> from paretoda.objectives import Coral, CrossEntropy
        >>> len(SumObjective([CrossEntropy(4, 3), Coral(4, 3)]).parts)
        2
    """

    def __init__(self, parts: Sequence[Objective]) -> None:
        super().__init__()
        if any(part.encoder_updates > 1 for part in parts):
            raise ValueError("an objective that the encoder lowers several times in a step cannot be part of a sum")
        self.parts = nn.ModuleList(parts)

    @property
    def offset(self) -> float:
        """Sum of the offsets."""
        return sum(part.offset for part in self._parts)

    @property
    def refreshes(self) -> bool:
        """Whether any part uses `refresh`."""
        return any(part.refreshes for part in self._parts)

    @property
    def refresh_due(self) -> bool:
        """Whether any part needs a refresh now."""
        return any(part.refresh_due for part in self._parts)

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the sum."""
        return torch.stack([part(source, target) for part in self._parts]).sum()

    def private_loss(self, source: Source, target: Target) -> Tensor | None:
        """Return the sum of the private losses, each of which reaches its own networks only."""
        losses = [part.private_loss(source, target) for part in self._parts]
        own = [loss for loss in losses if loss is not None]
        return torch.stack(own).sum() if own else None

    def advance(self, progress: float) -> None:
        """Advance all parts."""
        for part in self._parts:
            part.advance(progress)

    def refresh(self, snapshot: Snapshot) -> None:
        """Refresh all parts."""
        for part in self._parts:
            part.refresh(snapshot)

    @property
    def _parts(self) -> list[Objective]:
        return [part for part in self.parts if isinstance(part, Objective)]


def merge_source_and_alignment(objectives: dict[str, Objective]) -> dict[str, Objective]:
    """Merge the source loss and the alignment into one objective called "source"; the others stay as they are."""
    if "alignment" not in objectives:
        return objectives
    method = SumObjective([objectives["source"], objectives["alignment"]])
    rest = {name: objective for name, objective in objectives.items() if name not in ("source", "alignment")}
    return {"source": method, **rest}
