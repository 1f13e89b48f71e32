"""TAT: a classifier is right on examples made to be mistaken for the other domain's (Liu et al., 2019).

The examples lie between the domains: features are moved by gradient ascent until the discriminator errs, and are kept
near their start. The encoder does not have to bring the domains together, but to keep the classifier right on the way.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.differentiation import call_frozen
from paretoda.objectives.parts.discriminator import Discriminator, domain_cross_entropy
from paretoda.objectives.parts.step_cache import StepCache
from paretoda.objectives.target.information import entropies
from paretoda.types import Objective, Source, Target


def climb(start: Tensor, origin: Tensor, gain: Callable[[Tensor], Tensor], rate: float, pull: float, n: int) -> Tensor:
    """Gradient ascent on gain(x) - pull ‖x - origin‖², in which only x moves; the result is not differentiable.

    Args:
        start: First x, shape (n, d).
        origin: Point that x is pulled to, shape (n, d).
        gain: Function from x to a scalar.
        rate: Step size.
        pull: Strength of the pull; with rate * pull below 1 the steps cannot diverge because of it.
        n: Number of steps.

    Examples:
        >>> climb(torch.zeros(1, 1), torch.zeros(1, 1), lambda x: x.sum(), rate=0.5, pull=0.0, n=4)
        tensor([[2.]])
    """
    at, origin = start.detach(), origin.detach()
    for _ in range(n):
        with torch.enable_grad():
            at = at.requires_grad_()
            slope = torch.autograd.grad(gain(at), at)[0]
        at = at.detach() + rate * (slope - 2 * pull * (at.detach() - origin))
    return at


class Tat(Objective):
    """Cross-entropy on source examples and constancy of the prediction on target examples, both made to be mistaken.

    An example is a feature plus a constant, so the encoder's gradient depends on where the example is and not on how it
    was made.

    Args:
        features: Width d of the features.
        classes: Number of classes (not used).
        hidden: Width of the discriminator; 1024 in the paper.
        climbs: Number of ascent steps that make an example.
        rate: Step size of the ascent that misleads the discriminator.
        source_rate: Step size of the ascent that misleads the head as well, for examples of the source.
        pull: Strength of the pull towards the feature where the example began.
        entropy: Weight of the entropy of the target's predictions.
        released: Compute what the authors' code computes: examples follow the batch's mean and hardly move, the
            constancy is a sum over the batch, and the discriminator learns nothing from the examples.

    Raises:
        ValueError: A rate times the pull is not below 1.

    Examples:
        >>> head = torch.nn.Linear(4, 3)
        >>> features = torch.randn(8, 4)
        >>> source = Source(features, head(features), torch.arange(8), head=head, labels=torch.arange(8) % 3)
        >>> target = Target(features, head(features), torch.arange(8), head=head)
        >>> bool(Tat(features=4, classes=3)(source, target) > 0)
        True
    """

    def __init__(  # noqa: PLR0913 - every option is one of the paper's
        self,
        features: int,
        classes: int,
        *,
        hidden: int = 256,
        climbs: int = 20,
        rate: float = 2.0,
        source_rate: float = 3.0,
        pull: float = 0.1,
        entropy: float = 0.1,
        released: bool = False,
    ) -> None:
        super().__init__()
        if max(rate, source_rate) * pull >= 1:
            raise ValueError(f"rate times pull must be below 1, got {rate}, {source_rate} and {pull}")
        self.features, self.classes = features, classes
        self.climbs, self.rate, self.source_rate, self.pull = climbs, rate, source_rate, pull
        self.entropy, self.released = entropy, released
        self.discriminator = Discriminator(features, hidden)
        self.made: StepCache[tuple[Tensor, Tensor]] = StepCache()

    def examples(self, source: Source, target: Target) -> tuple[Tensor, Tensor]:
        """Features of both domains that the discriminator mistakes; the head mistakes those of the source as well.

        Returns:
            Constants, shapes (n, d) and (m, d).
        """
        n, origin = len(source.features), torch.cat([source.features, target.features])
        sizes = (n, len(origin) - n) if self.released else (1, 1)

        def domain_mistake(rows: Tensor) -> Tensor:
            scores = self._scores(rows)
            return functional.softplus(-scores[:n]).sum() / sizes[0] + functional.softplus(scores[n:]).sum() / sizes[1]

        def class_mistake(rows: Tensor) -> Tensor:
            return functional.cross_entropy(source.logits_of(rows), source.labels, reduction="sum") / sizes[0]

        rows = climb(origin, origin, domain_mistake, self.rate, self.pull, self.climbs)
        first = climb(rows[:n], origin[:n], class_mistake, self.source_rate, self.pull, self.climbs)
        return first, rows[n:]

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the cross-entropy of source examples plus change and weighted entropy of the target's predictions."""
        first, second = self.made.keep(source, self.examples(source, target))
        moved = source.features + (first - source.features).detach()
        right = functional.cross_entropy(source.logits_of(moved), source.labels)
        moved = target.features + (second - target.features).detach()
        changes = (target.logits_of(moved).softmax(1) - target.logits.softmax(1)).square().sum(1)
        certain = entropies(functional.log_softmax(target.logits, 1)).mean()
        return right + (changes.sum() if self.released else changes.mean()) + self.entropy * certain

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Return the discriminator's cross-entropy on the features and on the examples, all detached."""
        n, rows = len(source.features), torch.cat([source.features, target.features]).detach()
        examples = torch.cat(self.made.take(source) or self.examples(source, target))
        scores = self.discriminator(rows, "learn" if self.training else "running").squeeze(1)
        mistaken = self.discriminator(examples, "batch" if self.training else "running").squeeze(1)
        mistaken = mistaken.detach() if self.released else mistaken
        return domain_cross_entropy(scores[:n], scores[n:]) + domain_cross_entropy(mistaken[:n], mistaken[n:])

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"climbs={self.climbs}, rates={self.rate, self.source_rate}, pull={self.pull}, released={self.released}"

    def _scores(self, rows: Tensor) -> Tensor:
        return call_frozen(self.discriminator, rows, "batch" if self.training else "running").squeeze(1)
