"""scikit-learn estimators around `paretoda.adapt`, and scorers that need no target label."""

from __future__ import annotations

from paretoda.estimator.estimators import NegativeTransferWarning, ParetoDAClassifier, ParetoDATransformer
from paretoda.estimator.regressor import ParetoDARegressor
from paretoda.estimator.scoring import LabelFreeScorer, scorer

__all__ = [
    "LabelFreeScorer",
    "NegativeTransferWarning",
    "ParetoDAClassifier",
    "ParetoDARegressor",
    "ParetoDATransformer",
    "scorer",
]
