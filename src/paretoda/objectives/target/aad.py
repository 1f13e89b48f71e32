"""AaD: predictions attract those of neighbours and disperse from the rest of the batch (Yang et al., 2022)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.objectives.parts.growth import Growth, check_strength
from paretoda.objectives.parts.neighbours import Bank
from paretoda.types import Objective, Snapshot, Source, Target


@full_precision
def attract_and_disperse(predictions: Tensor, neighbours: Tensor, weight: float) -> Tensor:
    """Mean over i of Σ_j (1 - p_i·q_j) + λ (Σ_{m≠i} p_i·p_m - c), which is 0 at best.

    The paper's loss has neither the 1 nor c, so that it is negative; the gradient is the same. With n predictions of K
    classes the mean dispersion is (‖Σ p‖² - Σ ‖p‖²) / n, and at least c = max(0, n / K - 1), which it reaches where
    predictions are certain and the classes equally frequent.

    Args:
        predictions: Predictions p of the batch, shape (n, K).
        neighbours: Predictions q of the neighbours of each sample, constants, shape (n, k, K).
        weight: Weight λ of the dispersion.

    Examples:
        >>> certain = torch.eye(2)
        >>> attract_and_disperse(certain, certain.unsqueeze(1), weight=1.0)  # neighbours agree, and classes differ
        tensor(0.)
        >>> attract_and_disperse(certain[[0, 0]], certain[[0, 0]].unsqueeze(1), weight=1.0)  # one class for all
        tensor(1.)
    """
    n, classes = predictions.shape
    apart = neighbours.shape[1] - (predictions.unsqueeze(1) * neighbours).sum((1, 2)).mean()
    alike = (predictions.sum(0).square().sum() - predictions.square().sum()) / n
    return apart + weight * (alike - max(0.0, n / classes - 1))


class Aad(Objective):
    """Difference of target predictions from those of neighbours, plus their likeness to the rest of the batch.

    The neighbours are the nearest others by cosine in a bank of the features of the whole target; a second bank has
    their predictions. Each refresh fills both banks, and every training batch updates its own samples. The first
    predictions are those of an untrained head, so that the loss waits for the source's: the paper begins with a network
    that was trained on the source.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        k: Number of neighbours.
        beta: Exponent β of the weight of the dispersion, λ = (1 + 10 t)^-β at the share t of the training; 0: always 1.
        strength: Factor of the value and the gradient at full strength.
        start: Share of the training before which the strength is 0.
        full: Share of the training from which the strength is full; it grows linearly from `start`.

    Raises:
        ValueError: An option is out of its range.

    Examples:
        >>> from types import SimpleNamespace
        >>> certain = Target(torch.eye(3), 100 * torch.eye(3), torch.arange(3))
        >>> source = Source(torch.zeros(3, 3), torch.zeros(3, 3), torch.arange(3), labels=torch.arange(3))
        >>> objective = Aad(features=3, classes=3, k=1)
        >>> objective.refresh(SimpleNamespace(target=certain))  # in training a whole Snapshot
        >>> objective(source, certain)  # every neighbour is of another class
        tensor(1.)
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        k: int = 5,
        beta: float = 1.0,
        strength: float = 1.0,
        start: float = 0.2,
        full: float = 0.4,
    ) -> None:
        super().__init__()
        if k < 1 or beta < 0:
            raise ValueError(f"k must be 1 or more and beta 0 or more, got {k} and {beta}")
        check_strength(strength)
        self.k, self.beta, self.whole, self.growth = k, beta, strength, Growth(start, full)
        self.weight, self.strength = 1.0, strength
        self.bank, self.predictions = Bank(features), Bank(classes)

    def neighbours(self, target: Target) -> Tensor:
        """Predictions of the k nearest others of each sample, or of all others where there are fewer; (n, k, K)."""
        with torch.no_grad():
            bank = self.bank()
            similarity = functional.normalize(target.features, dim=1).to(bank) @ bank.T
            similarity[torch.arange(len(similarity)), target.index] = -torch.inf
            places = similarity.topk(min(self.k, len(bank) - 1), dim=1).indices
            found: Tensor = self.predictions()[places]
            return found

    def forward(self, source: Source, target: Target) -> Tensor:  # noqa: ARG002
        """Return the strength times attraction and weighted dispersion."""
        predictions = target.logits.softmax(1)
        return self.strength * attract_and_disperse(predictions, self.neighbours(target), self.weight)

    def private_loss(self, source: Source, target: Target) -> None:  # noqa: ARG002
        """Update the samples of this batch in the banks during training; there is no network to train."""
        if self.training:
            self.bank.update(target.index, functional.normalize(target.features, dim=1))
            self.predictions.update(target.index, target.logits.softmax(1))

    def advance(self, progress: float) -> None:
        """Set the weight of the dispersion and the strength for this share of the training."""
        self.strength = self.whole * self.growth(progress)
        self.weight = (1 + 10 * progress) ** -self.beta

    def refresh(self, snapshot: Snapshot) -> None:
        """Store features and predictions of the whole training part of the target."""
        self.bank.replace(functional.normalize(snapshot.target.features, dim=1))
        self.predictions.replace(snapshot.target.logits.softmax(1))

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        shares = f"start={self.growth.start}, full={self.growth.full}"
        return f"k={self.k}, beta={self.beta}, strength={self.whole}, {shares}"
