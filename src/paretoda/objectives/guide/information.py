"""Held-out predictions become certain one by one and diverse together."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from paretoda.domains import Objective, Source, Target
from paretoda.objectives.target.information import missing_information


class InformationGuide(Objective):
    """The information that the predictions of held-out samples lack.

    Args:
        features: width of the features; not used.
        classes: number of classes; not used.
        target_loss: not used.
    """

    def __init__(self, features: int, classes: int, target_loss: Objective | None = None) -> None:  # noqa: ARG002
        super().__init__()
        self.features, self.classes = features, classes

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The missing information of the held-out samples `target`."""
        return missing_information(functional.log_softmax(target.logits, 1))
