"""Mean teacher (Tarvainen and Valpola, 2017) with confident labels: the target as the average of the model sees it."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.growth import check_strength
from paretoda.types import Batch, Lesson, Objective, Source, Target, TaughtTarget


def find_taught(target: Target) -> TaughtTarget:
    """Return the target, which an objective that follows a teacher was called with.

    Raises:
        TypeError: The target has no labels of a teacher.
    """
    if not isinstance(target, TaughtTarget):
        raise TypeError("this objective follows a teacher: call it with a TaughtTarget")
    return target


class MeanTeacher(Objective):
    """Cross-entropy of the target's samples to the confident labels of the averaged model, over all samples.

    The teacher predicts without dropout, the model with it.

    Args:
        features: Width of the features (not used).
        classes: Number of classes K (not used).
        strength: Factor of the value and the gradient.
        confidence: Labels count where the teacher's largest probability is at least this.

    Raises:
        ValueError: The strength is negative, or the confidence is no probability.

    Examples:
        >>> import torch
        >>> batch = Batch(*torch.zeros(3, 2, 4), None, *[torch.arange(2)] * 2, None)
        >>> probabilities = torch.tensor([[0.1, 0.9, 0.0], [0.0, 0.01, 0.99]])
        >>> lesson = MeanTeacher(features=4, classes=3).lesson(batch, probabilities)
        >>> lesson.labels, lesson.weights
        (tensor([1, 2]), tensor([0., 1.]))
    """

    follows_teacher = True

    def __init__(
        self,
        features: int,  # noqa: ARG002
        classes: int,  # noqa: ARG002
        *,
        strength: float = 1.0,
        confidence: float = 0.95,
    ) -> None:
        super().__init__()
        check_strength(strength)
        if not 0 <= confidence <= 1:
            raise ValueError(f"confidence is a probability, from 0 to 1, not {confidence}")
        self.strength, self.confidence = strength, confidence

    def lesson(self, batch: Batch, probabilities: Tensor) -> Lesson:
        """Return the target's inputs, unchanged, with the teacher's classes; those that are confident count."""
        largest, labels = probabilities.max(1)
        return Lesson(batch.target, labels, (largest >= self.confidence).float())

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the strength times the mean of weight times cross-entropy.

        Raises:
            TypeError: The target has no labels of a teacher.
        """
        taught = find_taught(target)
        losses = functional.cross_entropy(taught.logits, taught.labels, reduction="none")
        return self.strength * (taught.weights * losses).mean()

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"strength={self.strength}, confidence={self.confidence}"
