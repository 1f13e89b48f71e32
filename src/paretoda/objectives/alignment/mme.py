"""MME: minimax entropy (Saito et al., 2019), in which the head and the encoder pull at the target's entropy.

The head raises the entropy of the target's predictions, which moves its class prototypes towards the target; the
encoder lowers it, which gathers the target around the prototypes. Made for a few labelled target samples.
"""

from __future__ import annotations

from torch import Tensor, nn

from paretoda.objectives.parts.differentiation import call_reversed
from paretoda.objectives.parts.growth import check_strength
from paretoda.objectives.target.information import entropies
from paretoda.types import Objective, Source, Target


class Mme(Objective):
    """The strength times the mean entropy of target predictions: the encoder lowers it, the head raises it.

    The value and its gradient in the features are those of the entropy. The gradient in the head's parameters has the
    opposite sign, so that the head needs no optimiser of its own. The paper's head is a cosine classifier with a
    temperature; here it is that of the run.

    Args:
        features: Width of the features (not used).
        classes: Number of classes (not used).
        strength: λ, the factor of the value and the gradients.

    Raises:
        ValueError: The strength is negative.

    Examples:
        >>> import torch
        >>> head = nn.Linear(4, 3)
        >>> features = torch.ones(2, 4)
        >>> target = Target(features, head(features), torch.arange(2), head=head)
        >>> source = Source(features, head(features), torch.arange(2), labels=torch.arange(2))
        >>> loss = Mme(features=4, classes=3)(source, target)
        >>> 0 < loss.item() < 0.11  # at most a tenth of log 3
        True
    """

    reads_all_sources = True

    def __init__(self, features: int, classes: int, *, strength: float = 0.1) -> None:  # noqa: ARG002
        super().__init__()
        check_strength(strength)
        self.strength = strength

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the strength times the entropy.

        Raises:
            ValueError: The target has no head, or one without parameters.
        """
        if not isinstance(target.head, nn.Module):
            raise ValueError("MME trains the head against the encoder: give Target the head's module as its `head`")
        logits = call_reversed(target.head, target.features)
        return self.strength * entropies(logits.log_softmax(1)).mean()

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"strength={self.strength}"
