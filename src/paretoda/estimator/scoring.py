"""Scorers for scikit-learn's searches that need no target label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from paretoda.estimator.domains import Array, checked_rows, from_source, known_labels
from paretoda.estimator.estimators import Adapted, batches
from paretoda.evaluation.predictions import domain_outputs
from paretoda.evaluation.validators import make_validator
from paretoda.types import Snapshot, Source

_READ_SOURCE = frozenset({"dev", "source-risk"})


@dataclass(frozen=True)
class LabelFreeScorer:
    """Scores a fitted estimator by a validator: higher is better, and labels of target rows are never read.

    Args:
        name: of the validator.
    """

    name: str

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_domain: Any = None) -> float:
        """The score on the target rows of X.

        Args:
            estimator: a fitted ParetoDAClassifier or ParetoDATransformer, or a Pipeline that ends with one, also
                skada's.
            X: shape (n, d).
            y: shape (n,); only "dev" and "source-risk" read it, and only at source rows.
            sample_domain: shape (n,), as in `fit`; None: all rows are the target's.
        """
        adapted, X = _unwrapped(estimator, X, sample_domain)
        check_is_fitted(adapted)
        rows = checked_rows(adapted, X, reset=False)
        source = np.zeros(len(rows), bool) if sample_domain is None else from_source(sample_domain, len(rows))
        if source.all():
            raise ValueError(f"the scorer {self.name!r} looks at target rows, and sample_domain has none")
        return make_validator(self.name)(_snapshot(adapted, rows[~source], self._source(adapted, rows, y, source)))

    def get_metadata_routing(self) -> MetadataRequest:
        """Asks scikit-learn for `sample_domain`, where metadata routing is enabled."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_domain", alias=True)
        return request

    def _source(self, adapted: Adapted, rows: Array, y: Any, source: Array) -> Source | None:
        """Labelled rows of the source, where the validator reads them."""
        if self.name not in _READ_SOURCE:
            return None
        if y is None or not source.any():
            raise ValueError(f"the scorer {self.name!r} reads labelled source rows: give y and sample_domain")
        labels = known_labels(y, source, adapted.classes_)
        predictor = adapted.run_.source_model
        return domain_outputs(predictor.model, batches(predictor, rows[source]), labels, device=_device(adapted))


def scorer(name: str) -> LabelFreeScorer:
    """The scorer of that validator, for `GridSearchCV(scoring=...)` and its like."""
    make_validator(name)
    return LabelFreeScorer(name)


def _unwrapped(estimator: Any, X: Any, sample_domain: Any) -> tuple[Adapted, Any]:
    """The adapted model at the end of pipelines, and X as it sees it."""
    while isinstance(estimator, Pipeline):
        if len(estimator) > 1:
            X = _transformed(estimator[:-1], X, sample_domain)
        estimator = estimator[-1]
        estimator = getattr(estimator, "base_estimator_", estimator)  # a pipeline of skada's wraps its steps
    if not isinstance(estimator, Adapted):
        raise TypeError(f"label-free scorers score ParetoDA's estimators, not {type(estimator).__name__}")
    return estimator, X


def _transformed(steps: Pipeline, X: Any, sample_domain: Any) -> Any:
    """X after the steps before the last; those that ask for the domains, as skada's do, are told."""
    asked = get_config()["enable_metadata_routing"] and sample_domain is not None
    names = get_routing_for_object(steps).consumes("transform", ["sample_domain"]) if asked else ()
    return steps.transform(X, **dict.fromkeys(names, sample_domain))


def _device(adapted: Adapted) -> torch.device:
    return next(adapted.run_.model.model.parameters()).device


def _snapshot(adapted: Adapted, rows: Array, source: Source | None) -> Snapshot:
    """The rows as a validator sees them; without a source, an empty one stands in its place."""
    predictor, device = adapted.run_.model, _device(adapted)
    target = domain_outputs(predictor.model, batches(predictor, rows), device=device)

    def again() -> Iterator[Tensor]:
        for batch in batches(predictor, rows):
            yield batch.to(device)

    if source is None:
        source = Source(
            target.features[:0], target.logits[:0], target.index[:0], labels=torch.empty(0, dtype=torch.int64)
        )
    return Snapshot(source, source, target, target, predictor.model, again)
