"""Choice of the model by the few labelled target samples that are held out: a score that is not label-free."""

from __future__ import annotations

from dataclasses import dataclass

from torch.nn import functional

from paretoda.types import Snapshot


@dataclass(frozen=True)
class TargetLikelihood:
    """Mean log p(label) of the labelled target samples that no loss is trained on; it reads target labels.

    The likelihood is finer than the accuracy, of which a dozen samples allow a dozen values only.

    Examples:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from paretoda.types import LabelledTarget
        >>> few = LabelledTarget(torch.zeros(2, 2), torch.zeros(2, 3), torch.arange(2), labels=torch.tensor([0, 2]))
        >>> round(TargetLikelihood()(SimpleNamespace(held_out_labelled=few)), 4)  # undecided: -log 3
        -1.0986
    """

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, at most 0.

        Raises:
            ValueError: No labelled target samples are held out.
        """
        few = snapshot.held_out_labelled
        if few is None:
            raise ValueError("no labelled target samples are held out; give --target-labels and --select labels")
        return -float(functional.cross_entropy(few.logits.double(), few.labels))
