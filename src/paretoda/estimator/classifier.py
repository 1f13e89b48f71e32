"""The adapted classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from paretoda.estimator.fitting import Adapted


class ParetoDAClassifier(ClassifierMixin, Adapted):  # type: ignore[misc]
    """A classifier for an unlabelled target, trained on a labelled source.

    The parameters are the fields of `paretoda.job.settings.Settings` that make sense for arrays, with the same defaults
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
