"""scikit-learn estimators around the main job, and scorers that need no target label."""

from __future__ import annotations

from paretoda.estimator.classifier import ParetoDAClassifier
from paretoda.estimator.fitting import NegativeTransferWarning
from paretoda.estimator.scoring import LabelFreeScorer, scorer
from paretoda.estimator.transformer import ParetoDATransformer

__all__ = ["LabelFreeScorer", "NegativeTransferWarning", "ParetoDAClassifier", "ParetoDATransformer", "scorer"]
