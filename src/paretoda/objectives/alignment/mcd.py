"""MCD: features on which two classifiers of the source cannot disagree (Saito et al., 2018)."""

from __future__ import annotations

from torch import Tensor

from paretoda.objectives.two_classifiers import ClassifierDiscrepancy


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
