"""Mixup between domains: features between a source and a target sample have a label between theirs.

Mixup is by Zhang et al. (2018); between domains and on features, with a soft label for the target, it is a line of
domain-adaptation methods, of which this is the plainest member.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Beta
from torch.nn import functional

from paretoda.objectives.parts.growth import Growth, check_strength
from paretoda.objectives.parts.neighbours import Bank
from paretoda.types import Objective, Snapshot, Source, Target


def mix(one: Tensor, other: Tensor, shares: Tensor) -> Tensor:
    """λ a + (1 - λ) b for every row.

    Args:
        one: Rows a, shape (n, d).
        other: Rows b, shape (n, d).
        shares: Shares λ of a, shape (n,).

    Examples:
        >>> mix(torch.ones(2, 1), torch.zeros(2, 1), torch.tensor([0.25, 1.0])).squeeze(1)
        tensor([0.2500, 1.0000])
    """
    shares = shares.to(one).unsqueeze(1)
    return shares * one + (1 - shares) * other


def label_divergences(logits: Tensor, labels: Tensor) -> Tensor:
    """Kullback-Leibler divergence of softmax(logits) from constant soft labels, for every row; never negative.

    It is the cross-entropy minus the entropy of the labels, so that it is 0 where the prediction is the label.

    Args:
        logits: Logits, shape (n, K).
        labels: Probabilities, shape (n, K).

    Returns:
        Shape (n,).

    Examples:
        >>> label_divergences(torch.zeros(1, 2), torch.tensor([[0.5, 0.5]]))
        tensor([0.])
    """
    known = torch.special.xlogy(labels, labels)
    found: Tensor = (known - labels * functional.log_softmax(logits, 1)).sum(1)
    return found


def draw_shares(count: int, concentration: float) -> Tensor:
    """Draw shares λ from Beta(a, a), shape (n,).

    Args:
        count: Number n of shares.
        concentration: Parameter a.

    Examples:
        >>> draw_shares(3, 1.0).shape
        torch.Size([3])
    """
    found: Tensor = Beta(concentration, concentration).sample((count,))
    return found


class Mixup(Objective):
    """Difference of the predictions at mixed features from the mixed labels.

    Each sample is mixed with a random one of the other domain, x = λ f_s + (1 - λ) f_t with λ from Beta(a, a), and its
    label is λ y_s + (1 - λ) p_t, where p_t is the prediction of the last refresh, a constant. An untrained head has
    nothing to say about the target, so that the loss waits for the source's.

    Args:
        features: Width of the features (not used).
        classes: Number of classes K.
        concentration: Parameter a of the distribution of λ: 1 is uniform, and smaller values, down to 0.1, mix less.
        strength: Factor of the value and the gradient at full strength.
        start: Share of the training before which the strength is 0.
        full: Share of the training from which the strength is full; it grows linearly from `start`.

    Raises:
        ValueError: An option is out of its range.

    Examples:
        >>> from types import SimpleNamespace
        >>> features, logits, head = torch.eye(3), torch.zeros(3, 3), torch.nn.Linear(3, 3)
        >>> source = Source(features, logits, torch.arange(3), head=head, labels=torch.arange(3))
        >>> target = Target(features, logits, torch.arange(3), head=head)
        >>> objective = Mixup(features=3, classes=3)
        >>> objective.refresh(SimpleNamespace(target=target))  # in training a whole Snapshot
        >>> bool(objective(source, target) > 0)
        True
    """

    def __init__(
        self,
        features: int,  # noqa: ARG002
        classes: int,
        *,
        concentration: float = 1.0,
        strength: float = 1.0,
        start: float = 0.2,
        full: float = 0.4,
    ) -> None:
        super().__init__()
        if concentration < 0.1:  # below, both of the Gamma variables behind a share often underflow
            raise ValueError(f"concentration must be 0.1 or more, got {concentration}")
        check_strength(strength)
        self.classes, self.concentration, self.whole = classes, concentration, strength
        self.growth = Growth(start, full)
        self.strength = strength
        self.predictions = Bank(classes)

    def pair(self, source: Source, target: Target) -> tuple[Tensor, Tensor]:
        """Return the rows of source and target that are mixed; each sample occurs, and the smaller domain repeats.

        The pairs are random, but depend only on which samples there are, not on their order in the batch.
        """
        keys = torch.rand(len(self.predictions()), device=target.index.device)
        first, second = source.index.argsort(), keys[target.index].argsort()
        row = torch.arange(max(len(first), len(second)), device=first.device)
        return first[row % len(first)], second[row % len(second)]

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the strength times the mean divergence at the mixed features."""
        first, second = self.pair(source, target)
        shares = draw_shares(len(first), self.concentration).to(source.features.device)
        logits = source.logits_of(mix(source.features[first], target.features[second], shares))
        known = functional.one_hot(source.labels, self.classes).to(self.predictions())
        labels = mix(known[first], self.predictions()[target.index[second]], shares)
        return self.strength * label_divergences(logits, labels.to(logits)).mean()

    def advance(self, progress: float) -> None:
        """Set the strength for this share of the training."""
        self.strength = self.whole * self.growth(progress)

    def refresh(self, snapshot: Snapshot) -> None:
        """Store the predictions of the whole training part of the target."""
        self.predictions.replace(snapshot.target.logits.softmax(1))

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        shares = f"start={self.growth.start}, full={self.growth.full}"
        return f"concentration={self.concentration}, strength={self.whole}, {shares}"
