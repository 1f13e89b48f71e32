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
from paretoda.estimator.domains import (
    Array,
    check_domains,
    check_rows,
    check_target_rows,
    find_codes,
    place_domains,
    split_domains,
)
from paretoda.estimator.parameters import Parameters
from paretoda.evaluation.predictions import predict
from paretoda.objectives.parts.label_sets import UNKNOWN
from paretoda.run.interrupt import InterruptedRunError
from paretoda.run.result import Run
from paretoda.tasks.classification.given_run import load_given_run
from paretoda.tasks.classification.predictor import ClassificationPredictor, mark_unknown
from paretoda.tasks.settings import make_settings

Self = TypeVar("Self", bound="Adapted")


class NegativeTransferWarning(UserWarning):
    """Label-free scores rank the adapted model below the source-only model."""


class Adapted(Parameters):
    """An estimator that `paretoda.adapt` fits; it requests `sample_domain` if metadata routing is enabled."""

    __metadata_request__fit = {"sample_domain": True, "target_labels": True}  # noqa: RUF012

    def fit(self: Self, X: Any, y: Any = None, sample_domain: Any = None, target_labels: Any = None) -> Self:
        """Train on a labelled source and an unlabelled target.

        With `from_run`, a finished run stands in the source's place: all rows are of the target, and y is not read.

        Args:
            X: Features, shape (n, d): an array, a data frame or a tensor.
            y: Classes, shape (n,). Values at target rows are never read; -1 is usual.
            sample_domain: Domain of each row, shape (n,): above 0 for source rows and below 0 for target rows of X.
                Several positive integers are several sources (`sources="pooled"` makes them one).
                With two dimensions, it is the features of the target, and X is the source: `fit(Xs, ys, Xt)`. Without
                it all of X is the source, and nothing is adapted.
            target_labels: The few labelled samples of the target, rows and classes: `(Xl, yl)`. They train unless the
                guide is "labels".

        Returns:
            The fitted estimator.

        Raises:
            SettingsError: If a parameter is unknown, out of bounds, or contradicts another.
            ValueError: If the data or the domains cannot be used.
        """
        settings = self._changed_settings()
        if self.from_run is None:
            source, target = self._split(X, y, sample_domain)
            settings |= {"method": "source-only", "target_loss": "none"} if target is None else {}
        else:
            source, target = None, check_target_rows(self, X, sample_domain)
            self.source_domains_ = [1]
            self.classes_ = np.array(load_given_run(str(make_settings(settings).from_run)).classes)
        few = None
        if target_labels is not None:
            codes = find_codes(target_labels[1], self.classes_)
            few = (check_rows(self, target_labels[0], reset=False), codes, self.classes_.astype(str))
        try:
            self.run_: Run = adapt(source, target, target_labels=few, **settings)
        except InterruptedRunError as stop:  # a search over parameters would continue after any other error
            raise KeyboardInterrupt(str(stop)) from stop
        self.history_ = self.run_.history
        self.scores_ = self.run_.scores
        self.warnings_ = self.run_.sentences
        if self.run_.negative_transfer is not None:
            warnings.warn(self.run_.negative_transfer, NegativeTransferWarning, stacklevel=2)
        return self

    def _split(self, X: Any, y: Any, sample_domain: Any) -> tuple[Any, Array | None]:
        """Return the source as `adapt` reads it and the rows of the target, if any; set the classes and the sources."""
        rows, labels, target, domain = split_domains(self, X, y, sample_domain)
        self.source_domains_ = np.unique(domain).tolist() if self.sources == "separate" else [1]
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("y has only one class in the source; a classifier needs samples of at least two classes")
        names = self.classes_.astype(str)
        if len(self.source_domains_) == 1:
            return (rows, codes, names), target
        return [(rows[domain == one], codes[domain == one], names) for one in self.source_domains_], target

    def find_predictors(self, sample_domain: Any, count: int) -> list[tuple[Array, ClassificationPredictor]]:
        """Return the positions of the rows of each domain, those of the target last, with the predictor for them."""
        domain = -np.ones(count, np.int64) if sample_domain is None else check_domains(sample_domain, count)
        models = [*self.run_.source_models, self.run_.model]
        places = place_domains(domain, self.source_domains_)
        order = [*range(len(models) - 1), -1]
        return [(np.flatnonzero(places == number), model) for number, model in zip(order, models, strict=True)]

    def _outputs(self, X: Any, sample_domain: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return features and logits, in float64 so that the outputs of a row do not depend on the other rows.

        Args:
            X: Features, shape (n, d).
            sample_domain: Domain of each row, shape (n,), as in `fit`; None if all rows are of the target.
        """
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False)
        parts = self.find_predictors(sample_domain, len(rows))
        outputs = [_compute_outputs(predictor, rows[places]) for places, predictor in parts if len(places)]
        order = np.argsort(np.concatenate([places for places, _ in parts]))
        features, logits = (np.concatenate(part)[order] for part in zip(*outputs, strict=True))
        return features, logits


def make_batches(predictor: ClassificationPredictor, rows: Array) -> Iterator[Tensor]:
    """Return the rows as batches for the network, shape (b, d) each."""
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

    New rows are treated as rows of the target unless `sample_domain` says that they are of the source: features of the
    two domains are scaled differently.

    The parameters are the fields of `paretoda.run.settings.Settings` that make sense for arrays, with the same names,
    defaults and meanings: those below, and others such as `steps`, `lr`, `batch_size` and `device`. Only the seed is
    called `random_state`.

    Args:
        method: Alignment of the domains; `paretoda list methods` shows all.
        target_loss: Losses on the unlabelled target, joined by plus signs; "none" for none.
        scheme: How the losses are weighted.
        guide: Loss on held-out target data that guides the weights.
        label_sets: Classes of the target: those of the source ("closed"), some of them ("partial"), or others besides
            ("open"), which are predicted as `unknown_label_`.
        random_state: Seed of the run; a generator or None draws one.

    Attributes:
        classes_: The classes, sorted, shape (K,).
        source_domains_: The positive integers of `sample_domain` that are sources of their own, sorted.
        unknown_label_: What `predict` returns for samples of no class if `label_sets` is "open": "unknown" for classes
            that are text, otherwise -1, or an integer below all classes if -1 is one of them.
        n_features_in_: The number of features d.
        feature_names_in_: The names of the columns, if X was a data frame.
        run_: The `Run` of `paretoda.adapt`.
        history_: One entry for each step.
        scores_: Label-free scores of the model; empty without a target.
        warnings_: What the user should know, in plain words.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> centres = 4 * rng.normal(size=(3, 5))
        >>> ys, yt = np.arange(90) % 3, np.arange(60) % 3
        >>> Xs = centres[ys] + rng.normal(size=(90, 5))  # the labelled source
        >>> Xt = centres[yt] + rng.normal(size=(60, 5)) + 2  # the target, shifted
        >>> model = ParetoDAClassifier(steps=60, select="last", reference=False).fit(Xs, ys, Xt)
        >>> bool((model.predict(Xt) == yt).mean() > 0.95)
        True
    """

    __metadata_request__decision_function = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__score = {"sample_domain": True}  # noqa: RUF012

    def decision_function(self, X: Any, sample_domain: Any = None) -> NDArray[np.float64]:
        """Return logits, shape (n, K); for two classes the log-odds of the second one, shape (n,).

        Args:
            X: Features, shape (n, d).
            sample_domain: Domain of each row, shape (n,), as in `fit`; None if all rows are of the target.
        """
        logits = self._outputs(X, sample_domain)[1]
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: Any, sample_domain: Any = None) -> NDArray[np.float64]:
        """Return class probabilities, shape (n, K), in the order of `classes_`.

        Args:
            X: Features, shape (n, d).
            sample_domain: Domain of each row, shape (n,), as in `fit`; None if all rows are of the target.
        """
        probabilities: NDArray[np.float64] = softmax(self._outputs(X, sample_domain)[1], axis=1)
        return probabilities

    def predict(self, X: Any, sample_domain: Any = None) -> NDArray[Any]:
        """Return the most probable classes, shape (n,), or `unknown_label_` for samples that look like none of them.

        Args:
            X: Features, shape (n, d).
            sample_domain: Domain of each row, shape (n,), as in `fit`; None if all rows are of the target.
        """
        logits = self._outputs(X, sample_domain)[1]
        best = logits.argmax(axis=1)
        threshold = self.run_.model.threshold
        if threshold is None:
            classes: NDArray[Any] = self.classes_[best]
            return classes
        mixed = self.classes_.dtype.kind in "bO"  # text beside what need not be text
        answers = np.array([*self.classes_.tolist(), self.unknown_label_], dtype=object if mixed else None)
        found: NDArray[Any] = answers[mark_unknown(best, softmax(logits, axis=1), threshold)]
        return found

    @property
    def unknown_label_(self) -> Any:
        """What `predict` returns for samples of no class."""
        check_is_fitted(self)
        if self.classes_.dtype.kind not in "iuf":
            return UNKNOWN
        return -1 if -1 not in self.classes_ else int(np.floor(self.classes_.min())) - 1

    def score(self, X: Any, y: Any, sample_domain: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on labelled rows.

        Args:
            X: Features, shape (n, d).
            y: Classes, shape (n,); with `label_sets` "open" all that `fit` did not see count as `unknown_label_`.
            sample_domain: Domain of each row, shape (n,), as in `fit`; None if all rows are of the target.
            sample_weight: Weight of each row, shape (n,); None for equal weights.
        """
        predicted = self.predict(X, sample_domain)
        if self.run_.model.threshold is not None:
            y = np.where(np.isin(y, self.classes_), np.asarray(y, dtype=predicted.dtype), self.unknown_label_)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))


class ParetoDATransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Adapted):  # type: ignore[misc]
    """The encoder of an adapted model: features whose distributions in source and target are similar.

    Parameters and fitted attributes are those of `ParetoDAClassifier`. Rows are treated as rows of the target unless
    `sample_domain` says that they are of the source.

    Args:
        method: Alignment of the domains; `paretoda list methods` shows all.
        target_loss: Losses on the unlabelled target, joined by plus signs; "none" for none.
        scheme: How the losses are weighted.
        guide: Loss on held-out target data that guides the weights.
        random_state: Seed of the run; a generator or None draws one.
        bottleneck: Number of features of each network; those of several members are side by side.
        members: Number of networks.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> centres = 4 * rng.normal(size=(3, 5))
        >>> ys, yt = np.arange(90) % 3, np.arange(60) % 3
        >>> Xs = centres[ys] + rng.normal(size=(90, 5))  # the labelled source
        >>> Xt = centres[yt] + rng.normal(size=(60, 5)) + 2  # the target, shifted
        >>> encoder = ParetoDATransformer(steps=10, bottleneck=8, members=2, select="last", reference=False)
        >>> encoder.fit(Xs, ys, Xt).transform(Xt).shape
        (60, 16)
    """

    __metadata_request__transform = {"sample_domain": True}  # noqa: RUF012

    def transform(self, X: Any, sample_domain: Any = None) -> NDArray[np.floating[Any]]:
        """Return the features, shape (n, members x bottleneck).

        Args:
            X: Features, shape (n, d).
            sample_domain: Domain of each row, shape (n,), as in `fit`; None if all rows are of the target.
        """
        features = self._outputs(X, sample_domain)[0]
        return features.astype(np.float32) if getattr(X, "dtype", None) == np.float32 else features

    def fit_transform(self, X: Any, y: Any = None, sample_domain: Any = None) -> NDArray[np.floating[Any]]:
        """Fit, then transform X, each row as a row of its own domain.

        Args:
            X: Features, shape (n, d).
            y: Classes, shape (n,), as in `fit`.
            sample_domain: Domains or target, as in `fit`.

        Returns:
            The features of X, shape (n, members x bottleneck).
        """
        self.fit(X, y, sample_domain)
        if sample_domain is None:
            return self.transform(X)
        domain = np.ones(len(X), int) if np.ndim(sample_domain) > 1 else sample_domain
        return self.transform(X, domain)

    @property
    def _n_features_out(self) -> int:
        """The number of features, for `get_feature_names_out`."""
        architecture = self.run_.model.model.architecture
        return int(architecture.width * architecture.members)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
