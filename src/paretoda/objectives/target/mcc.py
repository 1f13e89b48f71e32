"""MCC: predictions of the target confuse no two classes (Jin et al., 2020)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.domains import Objective, Source, Target
from paretoda.objectives.full_precision import full_precision
from paretoda.objectives.target.entropy import entropies

_UNSEEN = 1e-8
"""Added to the total of a class that nothing is predicted to be."""


@full_precision
def class_confusion(logits: Tensor, temperature: float) -> Tensor:
    """The mean over classes of the share of a class's predictions that goes to other classes; 0 to (K - 1) / K.

    Certain samples count up to twice as much; these weights, of mean 1, are constants.

    Args:
        logits: shape (n, K).
        temperature: divides the logits, so that confident predictions still show what they confuse.
    """
    log_p = functional.log_softmax(logits / temperature, 1)
    certainty = 1 + torch.exp(-entropies(log_p.detach()))
    p = log_p.exp()
    confusion = p.T @ (p * (certainty / certainty.mean()).unsqueeze(1))
    shares = confusion / (confusion.sum(1, keepdim=True) + _UNSEEN)
    return (shares.sum() - shares.trace()) / logits.shape[1]


class Mcc(Objective):
    """How much the target's predictions confuse the classes.

    Args:
        features: width of the features; not used.
        classes: number of classes; not used.
        temperature: of the predictions; 2.5 in the paper, 3 on VisDA.
    """

    def __init__(self, features: int, classes: int, *, temperature: float = 2.5) -> None:
        super().__init__()
        if temperature <= 0:
            raise ValueError(f"the temperature must be positive, got {temperature}")
        self.features, self.classes, self.temperature = features, classes, temperature

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The confusion."""
        return class_confusion(target.logits, self.temperature)

    def extra_repr(self) -> str:
        """Settings."""
        return f"temperature={self.temperature}"
