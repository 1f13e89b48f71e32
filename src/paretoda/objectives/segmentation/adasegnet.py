"""AdaSegNet: predictions of the target look like those of the source, in their layout (Tsai et al., 2018)."""

from __future__ import annotations

from torch import Tensor

from paretoda.objectives.segmentation.map_adversary import MapAdversary


class AdaSegNet(MapAdversary):
    """How far the target's maps of probabilities are from being taken for the source's; options of `MapAdversary`."""

    def seen(self, logits: Tensor) -> Tensor:
        """The probabilities."""
        return logits.softmax(1)
