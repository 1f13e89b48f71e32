"""AdvEnt: the target's predictions are in doubt where the source's are, class by class (Vu et al., 2019)."""

from __future__ import annotations

from torch import Tensor

from paretoda.objectives.segmentation.map_adversary import MapAdversary
from paretoda.objectives.segmentation.maps import self_information


class AdvEnt(MapAdversary):
    """How far the target's maps of self-information are from the source's; options of `MapAdversary`."""

    def seen(self, logits: Tensor) -> Tensor:
        """-p log p of every class, over log K."""
        return self_information(logits)
