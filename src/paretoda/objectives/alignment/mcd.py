"""MCD (Saito et al., 2018) and SWD (Lee et al., 2019): two source classifiers cannot disagree on the target.

Where two classifiers that both fit the source differ on the target, the target lies outside the source. The classifiers
seek such places, and the encoder moves the target away from them.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.differentiation import call_frozen, full_precision
from paretoda.objectives.parts.two_classifiers import TwoClassifiers, both_cross_entropies
from paretoda.types import Objective, Source, Target


def disagreement(one: Tensor, other: Tensor) -> Tensor:
    """Mean of |p - p'| over samples and classes: 0 where equal, 2 / K where each is certain of another class.

    Args:
        one: Predictions p, shape (n, K).
        other: Predictions p', shape (n, K).

    Examples:
        >>> disagreement(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))
        tensor(1.)
    """
    return (one - other).abs().mean()


def imbalance(probabilities: Tensor) -> Tensor:
    """-mean_k log(mean_i p_ik + 1e-6); its minimum, log K, is reached where all classes are predicted equally often.

    Args:
        probabilities: Probabilities p, shape (n, K).
    """
    return -(probabilities.mean(0) + 1e-6).log().mean()


class ClassifierDiscrepancy(Objective):
    """Discrepancy on the target of two classifiers that learn the source; abstract: a subclass defines `discrepancy`.

    The classifiers are private networks: the model's own head learns the source beside them and makes the predictions.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        hidden: Width of the two hidden layers of the classifiers; 1024 for images in later codes.
        dropout: Share of hidden units that dropout leaves out in the classifiers.
        strength: τ, the factor of the value and the gradient, and of the discrepancy in the classifiers' loss; 1 in the
            papers, 10 and 30 in later codes (Office-31, Office-Home), as the mean is over classes.
        balance: Factor of `imbalance`, which keeps a classifier from assigning the whole target to one class.
        encoder_updates: Number of encoder updates per step that lower the objective; 4 in MCD's paper.

    Raises:
        ValueError: There are fewer than one encoder updates.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        hidden: int = 256,
        dropout: float = 0.5,
        strength: float = 10.0,
        balance: float = 0.01,
        encoder_updates: int = 1,
    ) -> None:
        super().__init__()
        if encoder_updates < 1:
            raise ValueError(f"encoder_updates must be 1 or more, got {encoder_updates}")
        self.strength, self.balance, self.encoder_updates = strength, balance, encoder_updates
        self.classifiers = TwoClassifiers(features, classes, (hidden, hidden), dropout, norm=True)

    @abstractmethod
    def discrepancy(self, one: Tensor, other: Tensor) -> Tensor:
        """Distance between the predictions of the two classifiers, each of shape (n, K); non-negative."""

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the strength times the discrepancy on the target."""
        rows = torch.cat([source.features, target.features])
        logits = call_frozen(self.classifiers, rows, "batch" if self.training else "running")
        return self.strength * self.discrepancy(*logits[:, len(source.features) :].softmax(2))

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Return both cross-entropies on the source minus the strength times the discrepancy, on detached features."""
        rows = torch.cat([source.features, target.features]).detach()
        logits = self.classifiers(rows, "learn" if self.training else "running")
        one, other = logits[:, len(source.features) :].softmax(2)
        learned = both_cross_entropies(logits[:, : len(source.features)], source.labels)
        balanced = self.balance * (imbalance(one) + imbalance(other))
        return learned + balanced - self.strength * self.discrepancy(one, other)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"strength={self.strength}, balance={self.balance}, encoder_updates={self.encoder_updates}"


class Mcd(ClassifierDiscrepancy):
    """Disagreement of two source classifiers on the target, sample by sample.

    In one step the classifiers raise the disagreement and the encoder lowers it; with `encoder_updates=4` the encoder
    lowers it three times more, against the classifiers as they are then, as in the paper.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        hidden: Width of the two hidden layers of the classifiers.
        dropout: Share of hidden units that dropout leaves out in the classifiers.
        strength: τ; see `ClassifierDiscrepancy`.
        balance: Factor of `imbalance`.
        encoder_updates: Number of encoder updates per step that lower the objective; 4 in the paper.

    Examples:
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> target = Target(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> bool(Mcd(features=4, classes=3)(source, target) > 0)
        True
    """

    def discrepancy(self, one: Tensor, other: Tensor) -> Tensor:
        """Return the mean absolute difference."""
        return disagreement(one, other)


@full_precision
def sliced_wasserstein(one: Tensor, other: Tensor, directions: Tensor) -> Tensor:
    """Mean squared distance of the sorted projections of two point clouds on each direction.

    Args:
        one: Points, shape (n, K).
        other: As many points, shape (n, K); their order does not matter.
        directions: Unit columns, shape (K, M).

    Examples:
        >>> sliced_wasserstein(torch.tensor([[0.0], [1.0]]), torch.tensor([[3.0], [2.0]]), torch.ones(1, 1))
        tensor(4.)
    """
    # Each direction is a contiguous row, also of the gradient: the other layouts multiply and sort more slowly.
    ranked, other_ranked = (sort_rows(directions.T @ points.T.contiguous()) for points in (one, other))
    return (ranked - other_ranked).square().mean()


def sort_rows(values: Tensor) -> Tensor:
    """Sort the last dimension in ascending order; on a CPU, float32 is sorted by NumPy's vector instructions.

    Positions and numbers are packed into one integer each, because NumPy sorts integers much faster than it computes
    the order of floats, and torch does neither with vector instructions.

    Args:
        values: Numbers, shape (..., n).

    Returns:
        The sorted numbers, shape (..., n), through which gradients flow.

    Examples:
        >>> sort_rows(torch.tensor([[2.0, -1.0, 0.5]]))
        tensor([[-1.0000,  0.5000,  2.0000]])
    """
    if values.dtype != torch.float32 or values.device.type != "cpu":
        return values.sort(dim=-1).values
    bits = values.detach().contiguous().view(torch.int32)
    ascending = bits ^ (bits >> 31 & 0x7FFFFFFF)  # as integers, negative floats are in descending order
    keys = (ascending.long() << 32) | torch.arange(values.shape[-1])
    keys.numpy().sort(axis=-1)
    return values.gather(-1, keys & 0xFFFFFFFF)


def random_directions(width: int, count: int, like: Tensor) -> Tensor:
    """Directions that are uniform on the sphere.

    Args:
        width: Dimension K.
        count: Number M of directions.
        like: Tensor whose type and device they have.

    Returns:
        Unit columns, shape (K, M).
    """
    return functional.normalize(torch.randn(width, count, dtype=like.dtype, device=like.device), dim=0)


class Swd(ClassifierDiscrepancy):
    """Squared sliced Wasserstein distance of two classifiers' predictions on the target.

    The directions are drawn anew at every call.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        hidden: Width of the two hidden layers of the classifiers.
        dropout: Share of hidden units that dropout leaves out in the classifiers.
        strength: τ; see `ClassifierDiscrepancy`.
        balance: Factor of `imbalance`.
        encoder_updates: Number of encoder updates per step that lower the objective; 4 in MCD's paper.
        directions: Number M of directions.

    Raises:
        ValueError: There are fewer than one direction or encoder update.

    Examples:
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> target = Target(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> bool(Swd(features=4, classes=3)(source, target) > 0)
        True
    """

    def __init__(  # noqa: PLR0913 - every option is one of the paper's or of MCD's
        self,
        features: int,
        classes: int,
        *,
        hidden: int = 256,
        dropout: float = 0.5,
        strength: float = 10.0,
        balance: float = 0.01,
        encoder_updates: int = 1,
        directions: int = 128,
    ) -> None:
        super().__init__(
            features,
            classes,
            hidden=hidden,
            dropout=dropout,
            strength=strength,
            balance=balance,
            encoder_updates=encoder_updates,
        )
        if directions < 1:
            raise ValueError(f"directions must be 1 or more, got {directions}")
        self.directions = directions

    def discrepancy(self, one: Tensor, other: Tensor) -> Tensor:
        """Return the sliced Wasserstein distance along new directions."""
        return sliced_wasserstein(one, other, random_directions(one.shape[1], self.directions, one))
