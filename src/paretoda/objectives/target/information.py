"""Information maximisation: target predictions become certain one by one, diverse together (Liang et al., 2020).

-MI lies between -log min(N, K) and 0: N samples cannot tell apart more than N things. Shifted by that bound it is 0
when every prediction is certain and all classes are equally frequent, and a loss in the sense of the schemes.
"""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn import functional

from paretoda.domains import Objective, Source, Target
from paretoda.objectives.target.entropy import entropies


def information(log_probabilities: Tensor) -> Tensor:
    """The mutual information of sample and label: entropy of the mean prediction minus mean entropy.

    Args:
        log_probabilities: log p, shape (n, K).
    """
    marginal = log_probabilities.logsumexp(0, keepdim=True) - math.log(len(log_probabilities))
    return entropies(marginal).squeeze(0) - entropies(log_probabilities).mean()


def missing_information(log_probabilities: Tensor) -> Tensor:
    """How much the mutual information lacks of its largest value, log min(n, K); never negative.

    Args:
        log_probabilities: log p, shape (n, K).
    """
    return math.log(min(log_probabilities.shape)) - information(log_probabilities)


class Information(Objective):
    """The information that the target's predictions lack.

    Args:
        features: width of the features; not used.
        classes: number of classes; not used.
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.features, self.classes = features, classes

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """The missing information."""
        return missing_information(functional.log_softmax(target.logits, 1))
