"""Few target labels: cross-entropy on the labelled samples of the target, as an objective or as the guide."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.growth import check_strength
from paretoda.types import LabelledTarget, Objective, Source, Target


class TargetLabels(Objective):
    """The strength times the mean of -log p(label) on the target samples whose labels the user has given.

    A few samples that are in every batch are soon learned by heart. At full strength they take more from the
    adaptation than they give (docs/few-labels.md).

    As a guide it is the only one that is true: its samples are labelled, and no loss is trained on them.

    Args:
        features: Width of the features (not used).
        classes: Number of classes K (not used).
        strength: Factor of the value and the gradient.
        loss: Mean of -log p(label), a function of logits and labels; that of pixels for segmentation.
        target_loss: Target loss of the run (not used).

    Raises:
        ValueError: The strength is negative.

    Examples:
        >>> import torch
        >>> source = Source(torch.zeros(4, 2), torch.zeros(4, 3), torch.arange(4), labels=torch.tensor([0, 1, 2, 0]))
        >>> few = LabelledTarget(torch.zeros(2, 2), torch.zeros(2, 3), torch.arange(2), labels=torch.tensor([0, 2]))
        >>> round(TargetLabels(features=2, classes=3, strength=1)(source, few).item(), 4)  # log 3
        1.0986
    """

    reads_labels = True

    def __init__(
        self,
        features: int,  # noqa: ARG002
        classes: int,  # noqa: ARG002
        *,
        strength: float = 0.1,
        loss: Callable[[Tensor, Tensor], Tensor] = functional.cross_entropy,
        target_loss: Objective | None = None,  # noqa: ARG002
    ) -> None:
        super().__init__()
        check_strength(strength)
        self.strength, self.loss = strength, loss

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the strength times the cross-entropy of the labelled target samples.

        Raises:
            TypeError: The target samples have no labels.
        """
        if not isinstance(target, LabelledTarget):
            raise TypeError("this objective reads labels: call it with a LabelledTarget")
        return self.strength * self.loss(target.logits, target.labels)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"strength={self.strength}"
