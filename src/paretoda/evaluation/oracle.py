"""The only place that target labels enter: every name says oracle, and so does every number that comes from here."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from paretoda.evaluation.metrics import accuracy, mean_per_class
from paretoda.types import Objective, Source, Target


def oracle_accuracy(logits: Tensor, oracle_labels: Tensor) -> float:
    """The share of target samples that are classified rightly; no training may see it.

    Args:
        logits: Logits of the target, shape (n, K).
        oracle_labels: Labels of the target, shape (n,).
    """
    return accuracy(logits.argmax(dim=1), oracle_labels)


def oracle_mean_per_class(logits: Tensor, oracle_labels: Tensor) -> float:
    """The mean of the recalls of the target's classes; no training may see it.

    Args:
        logits: Logits of the target, shape (n, K).
        oracle_labels: Labels of the target, shape (n,).
    """
    return mean_per_class(logits.argmax(dim=1), oracle_labels, logits.shape[1])


class OracleGuide(Objective):
    """Cross-entropy of held-out target predictions to their labels: the ideal guide, for studies only.

    No table lists it and no setting names it; a study puts it into a step by hand.

    Args:
        oracle_labels: Of the held-out target samples, in their order, shape (n,).
    """

    def __init__(self, oracle_labels: Tensor) -> None:
        super().__init__()
        self.register_buffer("oracle_labels", oracle_labels, persistent=False)

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the cross-entropy on the held-out samples `target`."""
        return functional.cross_entropy(target.logits, self.get_buffer("oracle_labels")[target.index])


class OracleLabels(Objective):
    """Cross-entropy to the true labels of a few target samples: what an oracle guide must be compared with.

    Who has labels could as well train on them. Like `OracleGuide` it is for studies only.

    Args:
        oracle_labels: Of the target's training part, shape (n,); -1 for every sample whose label stays unknown.
    """

    def __init__(self, oracle_labels: Tensor) -> None:
        super().__init__()
        self.register_buffer("oracle_labels", oracle_labels, persistent=False)

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The mean over the batch's known samples; 0 where there are none."""
        labels = self.get_buffer("oracle_labels")[target.index]
        total = functional.cross_entropy(target.logits, labels, ignore_index=-1, reduction="sum")
        return total / (labels != -1).sum().clamp(min=1)
