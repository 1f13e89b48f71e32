"""Held-out predictions become certain individually and diverse together."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

from paretoda.objectives.target.information import Information, missing_information
from paretoda.objectives.target.tcm import Tcm
from paretoda.types import Objective, Source, Target


class InformationGuide(Objective):
    """Missing information of the predictions of held-out samples.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).
        target_loss: Target loss of the run, whose class prior is used here as well if it has one.

    Examples:
        >>> import torch
        >>> source = Source(torch.zeros(3, 2), torch.zeros(3, 3), torch.arange(3), labels=torch.arange(3))
        >>> held_out = Target(torch.zeros(3, 2), torch.zeros(3, 3), torch.arange(3))
        >>> round(InformationGuide(features=2, classes=3)(source, held_out).item(), 4)
        1.0986
    """

    def __init__(self, features: int, classes: int, target_loss: Objective | None = None) -> None:
        super().__init__()
        self.features, self.classes = features, classes
        # A function is not a submodule: no parameter is listed or saved twice.
        self._prior: Callable[[], Tensor | None] = lambda: (
            target_loss.prior.log if isinstance(target_loss, Information | Tcm) else None
        )

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the missing information of the held-out samples `target`."""
        return missing_information(functional.log_softmax(target.logits, 1), self._prior())
