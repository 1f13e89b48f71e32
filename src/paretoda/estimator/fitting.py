"""What both estimators share: `fit` is the main job, and fitted networks look at rows of either domain."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from paretoda.data.opening import open_samples
from paretoda.data.rows import tensors_of
from paretoda.estimator.domains import Array, checked_rows, from_source, split_domains
from paretoda.estimator.parameters import Parameters
from paretoda.evaluation.predictions import predict
from paretoda.job.adapt import adapt
from paretoda.job.interrupt import InterruptedRunError
from paretoda.job.predictor import Predictor
from paretoda.job.run import Run

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
        told = self._settings()
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
        rows = checked_rows(self, X, reset=False)
        if sample_domain is None:
            return _outputs(self.run_.model, rows)
        source = from_source(sample_domain, len(rows))
        width, classes = self.run_.settings.bottleneck, len(self.classes_)
        features, logits = np.empty((len(rows), width)), np.empty((len(rows), classes))
        for chosen, predictor in ((source, self.run_.source_model), (~source, self.run_.model)):
            if chosen.any():
                features[chosen], logits[chosen] = _outputs(predictor, rows[chosen])
        return features, logits


def batches(predictor: Predictor, rows: Array) -> Iterator[Tensor]:
    """The rows as the network takes them, shape (b, d) each."""
    return tensors_of(open_samples(rows, labelled=False), predictor.transform, 1024)


def _outputs(predictor: Predictor, rows: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    device = next(predictor.model.parameters()).device
    exact = copy.deepcopy(predictor.model).double()
    features, logits = predict(exact, (batch.double() for batch in batches(predictor, rows)), device=device)
    return features.numpy(), logits.numpy()
