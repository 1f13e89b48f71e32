"""The only place where target labels are used: every name and every number that comes from here says oracle."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from paretoda.evaluation.metrics import accuracy, mean_per_class, open_set_scores
from paretoda.types import Objective, Source, Target


def oracle_accuracy(logits: Tensor, oracle_labels: Tensor) -> float:
    """Share of target samples that are classified correctly; it must not influence training.

    Args:
        logits: Logits of the target, shape (n, K).
        oracle_labels: Labels of the target, shape (n,).

    Examples:
        >>> import torch
        >>> oracle_accuracy(torch.eye(3), torch.tensor([0, 1, 0]))
        0.6666666666666666
    """
    return accuracy(logits.argmax(dim=1), oracle_labels)


def oracle_mean_per_class(logits: Tensor, oracle_labels: Tensor) -> float:
    """Mean of the recalls of the target's classes; it must not influence training.

    Args:
        logits: Logits of the target, shape (n, K).
        oracle_labels: Labels of the target, shape (n,).
    """
    return mean_per_class(logits.argmax(dim=1), oracle_labels, logits.shape[1])


def oracle_open_set_scores(predicted: Tensor, oracle_labels: Tensor, classes: int) -> dict[str, float | None]:
    """Known accuracy, unknown accuracy and H-score of target predictions; they must not influence training.

    Args:
        predicted: Predictions of the target, shape (n,), in 0..K; K is "unknown".
        oracle_labels: Labels of the target, shape (n,), in 0..K.
        classes: Number of known classes K.
    """
    return open_set_scores(predicted, oracle_labels, classes)


class OracleGuide(Objective):
    """Cross-entropy of held-out target predictions to their labels: the ideal guide, for studies only.

    No table lists it and no setting names it; a study puts it into a step explicitly.

    Args:
        oracle_labels: Labels of the held-out target samples, in their order, shape (n,).
    """

    def __init__(self, oracle_labels: Tensor) -> None:
        super().__init__()
        self.register_buffer("oracle_labels", oracle_labels, persistent=False)

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the cross-entropy on the held-out samples `target`."""
        return functional.cross_entropy(target.logits, self.get_buffer("oracle_labels")[target.index])


class OracleLabels(Objective):
    """Cross-entropy to the true labels of a few target samples: the comparison for an oracle guide.

    Labels that a guide could use could be trained on as well. Like `OracleGuide` it is for studies only.

    Args:
        oracle_labels: Labels of the target's training part, shape (n,); -1 for every sample whose label stays unknown.
    """

    def __init__(self, oracle_labels: Tensor) -> None:
        super().__init__()
        self.register_buffer("oracle_labels", oracle_labels, persistent=False)

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the mean over the samples of the batch with known labels; 0 where there are none."""
        labels = self.get_buffer("oracle_labels")[target.index]
        total = functional.cross_entropy(target.logits, labels, ignore_index=-1, reduction="sum")
        return total / (labels != -1).sum().clamp(min=1)
