"""The scikit-learn estimators: an adapted classifier and adapted features."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from paretoda.api import adapt
from paretoda.data.open.samples import open_samples
from paretoda.data.rows import iterate_inputs
from paretoda.estimator.domains import Array, check_rows, find_source_rows, split_domains
from paretoda.estimator.parameters import Parameters
from paretoda.evaluation.predictions import predict
from paretoda.run.interrupt import InterruptedRunError
from paretoda.run.result import Run
from paretoda.tasks.classification.predictor import ClassificationPredictor

Self = TypeVar("Self", bound="Adapted")


class NegativeTransferWarning(UserWarning):
    """Label-free scores put the adapted model below the source-only one."""


class Adapted(Parameters):
    """An estimator that is fitted by `paretoda.adapt`; where scikit-learn routes metadata, it takes `sample_domain`."""

    __metadata_request__fit = {"sample_domain": True}  # noqa: RUF012

    def fit(self: Self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        """Train on a labelled source and an unlabelled target.

        Args:
            X: features, shape (n, d): an array, a data frame or a tensor.
            y: classes, shape (n,). What stands at target rows is never read; -1 is usual.
            sample_domain: shape (n,), above 0 for source rows and below 0 for target rows of X; or, with two
                dimensions, the target's features themselves, X being the source: `fit(Xs, ys, Xt)`. Without it all
                of X is the source, and nothing is adapted.
        """
        source, labels, target = split_domains(self, X, y, sample_domain)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("y has only one class in the source; a classifier needs samples of at least two classes")
        told = self._changed_settings()
        if target is None:
            told |= {"method": "source-only", "target_loss": "none"}
        try:
            self.run_: Run = adapt((source, codes, self.classes_.astype(str)), target, **told)
        except InterruptedRunError as stop:  # a search over parameters would go on after any other error
            raise KeyboardInterrupt(str(stop)) from stop
        self.history_ = self.run_.history
        self.scores_ = self.run_.scores
        self.warnings_ = self.run_.sentences
        if self.run_.negative_transfer is not None:
            warnings.warn(self.run_.negative_transfer, NegativeTransferWarning, stacklevel=2)
        return self

    def _outputs(self, X: Any, sample_domain: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Features and logits, in float64: so a row's outputs do not depend on the rows beside it.

        Args:
            X: shape (n, d).
            sample_domain: shape (n,), as in `fit`; None: all rows are the target's.
        """
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False)
        if sample_domain is None:
            return _compute_outputs(self.run_.model, rows)
        source = find_source_rows(sample_domain, len(rows))
        width, classes = self.run_.settings.bottleneck, len(self.classes_)
        features, logits = np.empty((len(rows), width)), np.empty((len(rows), classes))
        for chosen, predictor in ((source, self.run_.source_model), (~source, self.run_.model)):
            if chosen.any():
                features[chosen], logits[chosen] = _compute_outputs(predictor, rows[chosen])
        return features, logits


def make_batches(predictor: ClassificationPredictor, rows: Array) -> Iterator[Tensor]:
    """The rows as the network takes them, shape (b, d) each."""
    return iterate_inputs(open_samples(rows, labelled=False), predictor.transform, 1024)


def _compute_outputs(
    predictor: ClassificationPredictor, rows: Array
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    device = next(predictor.model.parameters()).device
    exact = copy.deepcopy(predictor.model).double()
    features, logits = predict(exact, (batch.double() for batch in make_batches(predictor, rows)), device=device)
    return features.numpy(), logits.numpy()


class ParetoDAClassifier(ClassifierMixin, Adapted):  # type: ignore[misc]
    """A classifier for an unlabelled target, trained on a labelled source.

    The parameters are the fields of `paretoda.run.settings.Settings` that make sense for arrays, with the same defaults
    and meanings; `random_state` is its `seed`. New rows are taken for the target's unless `sample_domain` says that
    they are the source's: the two differ in how features are scaled.

    After `fit`: `classes_`, `n_features_in_`, `feature_names_in_`, `run_` (the `Run` of `paretoda.adapt`), `history_`
    (one line a step), `scores_` (label-free validators; none without a target), `warnings_` (what the user should know,
    in plain words).
    """

    __metadata_request__decision_function = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__score = {"sample_domain": True}  # noqa: RUF012

    def decision_function(self, X: Any, sample_domain: Any = None) -> NDArray[np.float64]:
        """Logits, shape (n, K); for two classes the log-odds of the second, shape (n,)."""
        logits = self._outputs(X, sample_domain)[1]
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: Any, sample_domain: Any = None) -> NDArray[np.float64]:
        """Class probabilities, shape (n, K), in the order of `classes_`."""
        probabilities: NDArray[np.float64] = softmax(self._outputs(X, sample_domain)[1], axis=1)
        return probabilities

    def predict(self, X: Any, sample_domain: Any = None) -> NDArray[Any]:
        """The most probable classes, shape (n,)."""
        best = self._outputs(X, sample_domain)[1].argmax(axis=1)
        classes: NDArray[Any] = self.classes_[best]
        return classes

    def score(self, X: Any, y: Any, sample_domain: Any = None, sample_weight: Any = None) -> float:
        """The accuracy on labelled rows, weighted by `sample_weight` where it is given."""
        return float(accuracy_score(y, self.predict(X, sample_domain), sample_weight=sample_weight))


class ParetoDATransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Adapted):  # type: ignore[misc]
    """The encoder of an adapted model: features on which source and target look alike.

    Parameters and fitted attributes are those of `ParetoDAClassifier`. Rows are taken for the target's unless
    `sample_domain` says that they are the source's.
    """

    __metadata_request__transform = {"sample_domain": True}  # noqa: RUF012

    def transform(self, X: Any, sample_domain: Any = None) -> NDArray[np.floating[Any]]:
        """The features, shape (n, bottleneck)."""
        features = self._outputs(X, sample_domain)[0]
        return features.astype(np.float32) if getattr(X, "dtype", None) == np.float32 else features

    def fit_transform(self, X: Any, y: Any = None, sample_domain: Any = None) -> NDArray[np.floating[Any]]:
        """Fit, then transform X, each row as one of its own domain."""
        self.fit(X, y, sample_domain)
        if sample_domain is None:
            return self.transform(X)
        domain = np.ones(len(X), int) if np.ndim(sample_domain) > 1 else sample_domain
        return self.transform(X, domain)

    @property
    def _n_features_out(self) -> int:
        """For `get_feature_names_out`."""
        return self.run_.settings.bottleneck

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
