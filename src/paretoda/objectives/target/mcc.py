"""MCC: predictions of the target confuse no two classes (Jin et al., 2020).

Row j of the paper's normalised confusion matrix says where the predictions of class j go; what stays on its diagonal
is Σ w y_j² / Σ w y_j over the samples. In log space this is exact for classes that nothing is predicted to be: a small
constant in the divisor would reward their disappearance, and find no fault with one class for all.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.objectives.target.entropy import entropies
from paretoda.types import Objective, Source, Target


@full_precision
def class_confusion(logits: Tensor, temperature: float) -> Tensor:
    """The mean over classes of the share of a class's predictions that goes to other classes; 0 to (K - 1) / K.

    Certain samples count up to twice as much, by their weights w = 1 + exp(-H), which are constants. Their common
    factor, by which the paper gives them mean 1, falls out of the shares.

    Args:
        logits: shape (n, K).
        temperature: divides the logits, so that confident predictions still show what they confuse.
    """
    log_y = functional.log_softmax(logits / temperature, 1)
    log_weights = torch.exp(-entropies(log_y.detach())).log1p().unsqueeze(1)
    log_kept = (log_weights + 2 * log_y).logsumexp(0) - (log_weights + log_y).logsumexp(0)
    return -log_kept.expm1().mean()


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
