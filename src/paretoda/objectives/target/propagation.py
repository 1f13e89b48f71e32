"""Target predictions follow what mutual neighbours say, spread over the whole target."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.neighbours import Bank, mutual, nearest_others
from paretoda.types import Objective, Snapshot, Source, Target


def propagated(predictions: Tensor, places: Tensor, shares: Tensor, *, rounds: int) -> Tensor:
    """Predictions averaged with those of neighbours, again and again; each round keeps half of its own.

    Args:
        predictions: probabilities, shape (n, K).
        places: of each sample's neighbours, shape (n, k).
        shares: of each neighbour in the average, shape (n, k), at most 1 in all; what is missing to 1 is the sample's.
        rounds: how often.

    Returns:
        Probabilities, shape (n, K).
    """
    own = 1 - shares.sum(1, keepdim=True)
    for _ in range(rounds):
        heard = (shares.unsqueeze(2) * predictions[places]).sum(1) + own * predictions
        predictions = (predictions + heard) / 2
    return predictions


class Propagation(Objective):
    """Cross-entropy of target predictions to the labels that their neighbourhood agrees on.

    The neighbourhood is fixed: k nearest by cosine in a space that the training does not bend, so that a mistake cannot
    draw its neighbours closer. It is the input's for vectors, and that of the features before the first step for
    images. Only neighbours that choose each other count: a hub, which is near to everything, would spread its label
    over half of the target. At every refresh the model's predictions are spread over this graph; each sample then is
    asked for the class that comes out, weighted by its lead over the second.

    Args:
        features: width d of the features; not used.
        classes: number of classes K.
        k: number of neighbours.
        rounds: of propagation.
        strength: of value and gradient when fully on.
        start: share of the training before which predictions are not worth spreading.
        full: share of the training from which the strength is whole; it grows evenly from `start`.
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
        """Strength times the mean weighted cross-entropy of the batch."""
        wanted = self.wanted()[target.index]
        loss: Tensor = -self.strength * (wanted * target.logits.log_softmax(1)).sum(1).mean()
        return loss

    def advance(self, progress: float) -> None:
        """Set the strength to that of this share of the training."""
        grown = (progress - self.start) / (self.full - self.start) if self.full > self.start else 1.0
        self.strength = self.whole * min(1.0, max(0.0, grown)) if progress >= self.start else 0.0
        self.trained = progress > 0

    def refresh(self, snapshot: Snapshot) -> None:
        """Spread the present predictions; the labels of an untrained model have no weight."""
        if not len(self.graph.rows):
            self.graph.replace(nearest_others(_fixed_space(snapshot), self.k))
        places = self.graph().long()
        shares = mutual(places).to(snapshot.target.logits) / places.shape[1]
        spread = propagated(snapshot.target.logits.softmax(1), places, shares, rounds=self.rounds)
        best = spread.topk(2, dim=1)
        lead = (best.values[:, 0] - best.values[:, 1]) * float(self.trained)
        self.wanted.replace(functional.one_hot(best.indices[:, 0], spread.shape[1]) * lead.unsqueeze(1))

    def extra_repr(self) -> str:
        """Settings."""
        return f"k={self.k}, rounds={self.rounds}, strength={self.whole}, start={self.start}, full={self.full}"


def _fixed_space(snapshot: Snapshot) -> Tensor:
    """The target's inputs where they are vectors, its present features where they are images."""
    first = next(iter(snapshot.target_inputs()))
    return torch.cat(list(snapshot.target_inputs())) if first.ndim == 2 else snapshot.target.features
