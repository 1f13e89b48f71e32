"""TAT: a classifier that is right on examples made to be mistaken for the other domain's (Liu et al., 2019).

The examples lie between the domains: features that climb until the discriminator errs, kept near where they began.
The encoder is not asked to bring the domains together but to stay right along the way.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.differentiation import frozen
from paretoda.objectives.parts.discriminator import Discriminator, domain_cross_entropy
from paretoda.objectives.parts.step_cache import StepCache
from paretoda.objectives.target.entropy import entropies
from paretoda.types import Objective, Source, Target


def climb(start: Tensor, origin: Tensor, gain: Callable[[Tensor], Tensor], rate: float, pull: float, n: int) -> Tensor:
    """Steps of gradient ascent on gain(x) - pull ‖x - origin‖², x alone moving; nothing is differentiable in it.

    Args:
        start: first x, shape (n, d).
        origin: to which it is pulled, shape (n, d).
        gain: x -> scalar.
        rate: of a step.
        pull: with rate * pull below 1 the steps cannot run away.
        n: number of steps.
    """
    at, origin = start.detach(), origin.detach()
    for _ in range(n):
        with torch.enable_grad():
            at = at.requires_grad_()
            slope = torch.autograd.grad(gain(at), at)[0]
        at = at.detach() + rate * (slope - 2 * pull * (at.detach() - origin))
    return at


class Tat(Objective):
    """Cross-entropy on source examples, and constancy of the prediction on target examples, made to be mistaken.

    An example is a feature plus a constant, so the encoder feels where it is and not how it was made.

    Args:
        features: width d of the features.
        classes: number of classes; not used.
        hidden: width of the discriminator; 1024 in the paper.
        climbs: number of steps by which an example is made.
        rate: of a step that misleads the discriminator.
        source_rate: of a step that misleads the head as well, for examples of the source.
        pull: towards the feature where the example began.
        entropy: weight of the entropy of the target's predictions.
        released: as the authors' code computes it: examples follow the batch's mean and hardly move, the constancy is
            a sum over the batch, and the discriminator learns nothing from the examples.
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
        """Features of both domains that the discriminator mistakes, those of the source mistaken by the head as well.

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
        """Cross-entropy of the source's examples + change of the target's predictions + a share of their entropy."""
        first, second = self.made.keep(source, self.examples(source, target))
        moved = source.features + (first - source.features).detach()
        right = functional.cross_entropy(source.logits_of(moved), source.labels)
        moved = target.features + (second - target.features).detach()
        changes = (target.logits_of(moved).softmax(1) - target.logits.softmax(1)).square().sum(1)
        certain = entropies(functional.log_softmax(target.logits, 1)).mean()
        return right + (changes.sum() if self.released else changes.mean()) + self.entropy * certain

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """The discriminator's cross-entropy on the features and on the examples, all detached."""
        n, rows = len(source.features), torch.cat([source.features, target.features]).detach()
        examples = torch.cat(self.made.take(source) or self.examples(source, target))
        scores = self.discriminator(rows, "learn" if self.training else "running").squeeze(1)
        mistaken = self.discriminator(examples, "batch" if self.training else "running").squeeze(1)
        mistaken = mistaken.detach() if self.released else mistaken
        return domain_cross_entropy(scores[:n], scores[n:]) + domain_cross_entropy(mistaken[:n], mistaken[n:])

    def extra_repr(self) -> str:
        """Settings."""
        return f"climbs={self.climbs}, rates={self.rate, self.source_rate}, pull={self.pull}, released={self.released}"

    def _scores(self, rows: Tensor) -> Tensor:
        return frozen(self.discriminator, rows, "batch" if self.training else "running").squeeze(1)
