"""Held-out predictions become certain one by one and diverse together."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

from paretoda.objectives.target.information import Information, missing_information
from paretoda.objectives.target.tcm import Tcm
from paretoda.types import Objective, Source, Target


class InformationGuide(Objective):
    """The information that the predictions of held-out samples lack.

    Args:
        features: width of the features; not used.
        classes: number of classes; not used.
        target_loss: its prior of the classes counts here as well, where it has one.
    """

    def __init__(self, features: int, classes: int, target_loss: Objective | None = None) -> None:
        super().__init__()
        self.features, self.classes = features, classes
        # A function is no submodule: nothing is listed or saved twice.
        self._prior: Callable[[], Tensor | None] = lambda: (
            target_loss.prior.log if isinstance(target_loss, Information | Tcm) else None
        )

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The missing information of the held-out samples `target`."""
        return missing_information(functional.log_softmax(target.logits, 1), self._prior())
