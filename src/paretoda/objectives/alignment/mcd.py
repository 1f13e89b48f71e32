"""MCD (Saito et al., 2018) and SWD (Lee et al., 2019): features on which two classifiers cannot disagree."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.objectives.parts.two_classifiers import ClassifierDiscrepancy


def disagreement(one: Tensor, other: Tensor) -> Tensor:
    """The mean of |p - p'| over samples and classes: 0 where equal, 2 / K where each is sure of another class.

    Args:
        one: predictions p, shape (n, K).
        other: predictions p', shape (n, K).
    """
    return (one - other).abs().mean()


class Mcd(ClassifierDiscrepancy):
    """How much two classifiers that learn the source disagree on the target, sample by sample.

    In one step the classifiers raise the disagreement and the encoder lowers it; with `encoder_updates=4` the encoder
    lowers it three times more, against the classifiers as they are then, as in the paper.

    Args:
        features: width d of the features.
        classes: number of classes K.
        hidden: width of the classifiers' two hidden layers; 1024 for images in the later codes.
        dropout: in the classifiers.
        strength: τ; 1 in the paper, 10 and 30 in later codes (Office-31, Office-Home), as the mean is over classes.
        balance: of the term that keeps a classifier from giving the whole target to one class.
        encoder_updates: how often in a step the encoder lowers it; 4 in the paper.
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
        super().__init__(
            features,
            classes,
            hidden=hidden,
            dropout=dropout,
            strength=strength,
            balance=balance,
            encoder_updates=encoder_updates,
        )

    def discrepancy(self, one: Tensor, other: Tensor) -> Tensor:
        """The mean absolute difference."""
        return disagreement(one, other)


@full_precision
def sliced_wasserstein(one: Tensor, other: Tensor, directions: Tensor) -> Tensor:
    """The mean squared distance of the sorted projections: how far one cloud is from the other along each direction.

    Args:
        one: points, shape (n, K).
        other: as many points, shape (n, K); their order does not matter.
        directions: unit columns, shape (K, M).
    """
    ranked, other_ranked = ((points @ directions).sort(dim=0).values for points in (one, other))
    return (ranked - other_ranked).square().mean()


def random_directions(width: int, count: int, like: Tensor) -> Tensor:
    """Directions that are uniform on the sphere.

    Args:
        width: K.
        count: M.
        like: whose type and device they have.

    Returns:
        Unit columns, shape (K, M).
    """
    return functional.normalize(torch.randn(width, count, dtype=like.dtype, device=like.device), dim=0)


class Swd(ClassifierDiscrepancy):
    """The sliced Wasserstein distance, squared, of two classifiers' predictions of the target.

    The directions are drawn anew at every call.

    Args:
        features: width d of the features.
        classes: number of classes K.
        hidden: width of the classifiers' two hidden layers.
        dropout: in the classifiers.
        strength: τ; see `Mcd`.
        balance: of the term that keeps a classifier from giving the whole target to one class.
        encoder_updates: how often in a step the encoder lowers it; 4 in MCD's paper.
        directions: their number M.
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
        """The sliced Wasserstein distance along new directions."""
        return sliced_wasserstein(one, other, random_directions(one.shape[1], self.directions, one))
