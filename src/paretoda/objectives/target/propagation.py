"""Label propagation: target predictions follow those of mutual neighbours, spread over the whole target."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.neighbours import Bank, find_mutual, find_nearest
from paretoda.types import Objective, Snapshot, Source, Target


def propagate(predictions: Tensor, places: Tensor, shares: Tensor, *, rounds: int) -> Tensor:
    """Average the predictions repeatedly with those of neighbours; each round keeps half of a sample's own.

    Args:
        predictions: Probabilities, shape (n, K).
        places: Positions of the neighbours of each sample, shape (n, k).
        shares: Weights of the neighbours in the average, shape (n, k), with sums of at most 1; the sample itself has
            the remaining weight.
        rounds: Number of rounds.

    Returns:
        Probabilities, shape (n, K).

    Examples:
        >>> pair = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> propagate(pair, torch.tensor([[1], [0]]), torch.ones(2, 1), rounds=1)
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
    """
    own = 1 - shares.sum(1, keepdim=True)
    for _ in range(rounds):
        neighbours = (shares.unsqueeze(2) * predictions[places]).sum(1) + own * predictions
        predictions = (predictions + neighbours) / 2
    return predictions


class Propagation(Objective):
    """Cross-entropy of target predictions to the labels that their neighbourhood agrees on.

    The neighbourhood is fixed: the k nearest samples by cosine in a space that the training does not change, so that a
    mistake cannot draw its neighbours closer. The space is that of the inputs for vectors, and that of the features
    before the first step for images. Only neighbours that choose each other count, because a hub, which is near to
    everything, would spread its label over half of the target. At every refresh the model's predictions are spread over
    this graph; each sample is then trained towards the resulting class, weighted by its lead over the second.

    Args:
        features: Width d of the features (not used).
        classes: Number of classes K.
        k: Number of neighbours.
        rounds: Number of propagation rounds.
        strength: Factor of the value and the gradient at full strength.
        start: Share of the training before which the predictions are not used.
        full: Share of the training from which the strength is full; it grows linearly from `start`.

    Raises:
        ValueError: An option is out of its range.

    Examples:
        >>> source = Source(torch.zeros(2, 2), torch.zeros(2, 3), torch.arange(2), labels=torch.arange(2))
        >>> target = Target(torch.zeros(2, 2), torch.zeros(2, 3), torch.arange(2))
        >>> objective = Propagation(features=2, classes=3)
        >>> objective.wanted.replace(torch.eye(3)[:2])  # in training `refresh` sets the wanted classes
        >>> round(objective(source, target).item(), 4)
        1.0986
    """

    def __init__(
        self,
        features: int,  # noqa: ARG002
        classes: int,
        *,
        k: int = 10,
        rounds: int = 10,
        strength: float = 1.0,
        start: float = 0.2,
        full: float = 0.4,
    ) -> None:
        super().__init__()
        if k < 1 or rounds < 1:
            raise ValueError(f"k and rounds must be 1 or more, got {k} and {rounds}")
        if not 0 <= start <= full <= 1:
            raise ValueError(f"start and full are shares of the training, in this order, got {start} and {full}")
        if strength <= 0:
            raise ValueError(f"strength must be positive, got {strength}")
        self.k, self.rounds, self.whole, self.start, self.full = k, rounds, strength, start, full
        self.strength, self.trained = strength, True
        self.wanted = Bank(classes)
        self.graph = Bank(k)

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the strength times the mean weighted cross-entropy of the batch."""
        wanted = self.wanted()[target.index]
        loss: Tensor = -self.strength * (wanted * target.logits.log_softmax(1)).sum(1).mean()
        return loss

    def advance(self, progress: float) -> None:
        """Set the strength for this share of the training."""
        grown = (progress - self.start) / (self.full - self.start) if self.full > self.start else 1.0
        self.strength = self.whole * min(1.0, max(0.0, grown)) if progress >= self.start else 0.0
        self.trained = progress > 0

    def refresh(self, snapshot: Snapshot) -> None:
        """Spread the present predictions; the labels of an untrained model have no weight."""
        if not len(self.graph.rows):
            self.graph.replace(find_nearest(_fixed_space(snapshot), self.k))
        places = self.graph().long()
        shares = find_mutual(places).to(snapshot.target.logits) / places.shape[1]
        spread = propagate(snapshot.target.logits.softmax(1), places, shares, rounds=self.rounds)
        best = spread.topk(2, dim=1)
        lead = (best.values[:, 0] - best.values[:, 1]) * float(self.trained)
        self.wanted.replace(functional.one_hot(best.indices[:, 0], spread.shape[1]) * lead.unsqueeze(1))

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"k={self.k}, rounds={self.rounds}, strength={self.whole}, start={self.start}, full={self.full}"


def _fixed_space(snapshot: Snapshot) -> Tensor:
    """Inputs of the target where they are vectors, its present features where they are images."""
    first = next(iter(snapshot.target_inputs()))
    return torch.cat(list(snapshot.target_inputs())) if first.ndim == 2 else snapshot.target.features
