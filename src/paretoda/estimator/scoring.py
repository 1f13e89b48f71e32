"""Scorers for the searches of scikit-learn that need no target label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from paretoda.estimator.domains import Array, check_domains, check_rows, encode_labels
from paretoda.estimator.estimators import Adapted, make_batches
from paretoda.evaluation.predictions import domain_outputs
from paretoda.evaluation.validators import WITH_SOURCE, make_validator
from paretoda.types import Snapshot, Source


@dataclass(frozen=True)
class LabelFreeScorer:
    """A scorer that applies a validator: higher is better, and labels of target rows are never read.

    Args:
        name: Name of the validator.
    """

    name: str

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_domain: Any = None) -> float:
        """Return the score on the target rows of X.

        Args:
            estimator: A fitted ParetoDAClassifier or ParetoDATransformer, or a Pipeline that ends with one, also one
                of skada.
            X: Features, shape (n, d).
            y: Classes, shape (n,); only "circv", "dev" and "source-risk" read it, and only at source rows.
            sample_domain: Domain of each row, shape (n,), as in `fit`; None if all rows are of the target.

        Raises:
            ValueError: If there is no target row, or the validator needs labelled source rows that are missing.
            TypeError: If the estimator is none of ParetoDA.
        """
        adapted, X = _unwrap(estimator, X, sample_domain)
        check_is_fitted(adapted)
        rows = check_rows(adapted, X, reset=False)
        source = np.zeros(len(rows), bool) if sample_domain is None else check_domains(sample_domain, len(rows)) > 0
        if source.all():
            raise ValueError(f"the scorer {self.name!r} scores target rows, but sample_domain has none")
        return make_validator(self.name)(
            _make_snapshot(adapted, rows[~source], self._source(adapted, rows, y, sample_domain))
        )

    def get_metadata_routing(self) -> MetadataRequest:
        """Request `sample_domain` if the metadata routing of scikit-learn is enabled."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_domain", alias=True)
        return request

    def _source(self, adapted: Adapted, rows: Array, y: Any, sample_domain: Any) -> Source | None:
        """Return the labelled rows of the source if the validator reads them, one source after the other."""
        if self.name not in WITH_SOURCE:
            return None
        *sources, _ = adapted.find_predictors(sample_domain, len(rows))
        places = np.concatenate([own for own, _ in sources])
        if y is None or not len(places):
            raise ValueError(f"the scorer {self.name!r} reads labelled source rows: give y and sample_domain")
        check_consistent_length(rows, y)
        labels = encode_labels(y, places, adapted.classes_)
        batches = [batch for own, predictor in sources if len(own) for batch in make_batches(predictor, rows[own])]
        return domain_outputs(adapted.run_.model.model, batches, labels, device=_find_device(adapted))


def scorer(name: str) -> LabelFreeScorer:
    """Return the scorer of a validator, for `GridSearchCV(scoring=...)` and the like.

    Args:
        name: Name of the validator; `paretoda list validators` shows all.

    Returns:
        A callable `scorer(estimator, X, y, sample_domain)`; higher scores are better.

    Raises:
        ValueError: If there is no such validator.

    Example:
        >>> import numpy as np
        >>> from paretoda import ParetoDAClassifier
        >>> rng = np.random.default_rng(0)
        >>> y = np.arange(150) % 3
        >>> domain = np.repeat([1, -1], [90, 60])
        >>> X = 4 * np.eye(3)[y] + rng.normal(size=(150, 3)) + (domain < 0)[:, None]
        >>> model = ParetoDAClassifier(steps=60, select="last", reference=False).fit(X, y, domain)
        >>> untrained = ParetoDAClassifier(steps=1, select="last", reference=False).fit(X, y, domain)
        >>> score = scorer("im")
        >>> score(model, X, None, domain) > score(untrained, X, None, domain)
        True
    """
    make_validator(name)
    return LabelFreeScorer(name)


def _unwrap(estimator: Any, X: Any, sample_domain: Any) -> tuple[Adapted, Any]:
    """Return the estimator at the end of pipelines, and X as the previous steps transform it."""
    while isinstance(estimator, Pipeline):
        if len(estimator) > 1:
            X = _transform(estimator[:-1], X, sample_domain)
        estimator = estimator[-1]
        estimator = getattr(estimator, "base_estimator_", estimator)  # pipelines of skada wrap their steps
    if not isinstance(estimator, Adapted):
        raise TypeError(f"label-free scorers score ParetoDA's estimators, not {type(estimator).__name__}")
    return estimator, X


def _transform(steps: Pipeline, X: Any, sample_domain: Any) -> Any:
    """Return X after the steps; those that request the domains, as those of skada do, receive them."""
    routed = get_config()["enable_metadata_routing"] and sample_domain is not None
    names = get_routing_for_object(steps).consumes("transform", ["sample_domain"]) if routed else ()
    return steps.transform(X, **dict.fromkeys(names, sample_domain))


def _find_device(adapted: Adapted) -> torch.device:
    device: torch.device = next(adapted.run_.model.model.parameters()).device
    return device


def _make_snapshot(adapted: Adapted, rows: Array, source: Source | None) -> Snapshot:
    """Return the rows as a validator reads them; without a source, an empty one takes its place."""
    predictor, device = adapted.run_.model, _find_device(adapted)
    target = domain_outputs(predictor.model, make_batches(predictor, rows), device=device)

    def target_batches() -> Iterator[Tensor]:
        for batch in make_batches(predictor, rows):
            yield batch.to(device)

    if source is None:
        source = Source(
            target.features[:0], target.logits[:0], target.index[:0], labels=torch.empty(0, dtype=torch.int64)
        )
    return Snapshot(source, source, target, target, predictor.model, target_batches)
