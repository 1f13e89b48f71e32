"""The scikit-learn regressor: a number for each row of an unlabelled target."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted

from paretoda.api import adapt
from paretoda.estimator.domains import Array, check_domains, check_rows, split_rows, to_numpy
from paretoda.estimator.estimators import make_batches
from paretoda.estimator.parameters import change_settings
from paretoda.evaluation.predictions import predict
from paretoda.run.interrupt import InterruptedRunError
from paretoda.run.result import Run
from paretoda.tasks import REGRESSION
from paretoda.tasks.regression.predictor import RegressionPredictor
from paretoda.tasks.settings import make_settings

_DEFAULTS = make_settings({"task": REGRESSION})


class ParetoDARegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor for an unlabelled target, trained on a source with values.

    New rows are treated as rows of the target unless `sample_domain` says that they are of the source, which matters
    where the domains are scaled differently (`scaling="per-domain"`).

    The parameters are the settings of `--task regression` that make sense for arrays, with the same names, defaults and
    meanings. Only the seed is called `random_state`.

    Args:
        method: Alignment of the domains; `paretoda list methods --task regression` shows all.
        target_loss: Losses on the unlabelled target, joined by plus signs; "none" for none.
        scheme: How the losses are weighted.
        guide: Loss on held-out target data, for schemes that read one.
        source_loss: "mse" or "huber".
        random_state: Seed of the run; a generator or None draws one.

    Attributes:
        n_features_in_: The number of features d.
        feature_names_in_: The names of the columns, if X was a data frame.
        run_: The `Run` of `paretoda.adapt`.
        history_: One entry for each step.
        scores_: Label-free scores of the model; empty without a target.
        warnings_: What the user should know, in plain words.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> Xs, Xt = rng.normal(size=(90, 3)), rng.normal(size=(60, 3)) + 0.5
        >>> ys, yt = Xs.sum(axis=1), Xt.sum(axis=1)
        >>> model = ParetoDARegressor(steps=100, select="last").fit(Xs, ys, Xt)
        >>> model.score(Xt, yt) > 0.8
        True
    """

    __metadata_request__fit = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__score = {"sample_domain": True}  # noqa: RUF012

    def __init__(  # noqa: PLR0913  (scikit-learn reads names and defaults from the signature)
        self,
        method: str = "rsd",
        target_loss: str = "none",
        scheme: str = "linear",
        guide: str = "neighbours",
        *,
        loss_weights: tuple[float, ...] = (),
        joined: bool = False,
        head_losses: tuple[str, ...] | None = None,
        options: tuple[str, ...] = (),
        voting: str | None = None,
        every: int | None = None,
        average: float | None = None,
        calibrate: bool | None = None,
        bottleneck: int = 256,
        dropout: float | None = 0.0,
        steps: int = 500,
        batch_size: int = 64,
        lr: float | None = None,
        momentum: float = 0.9,
        weight_decay: float = 1e-3,
        schedule: str = "inverse",
        decay: float = 10.0,
        source_loss: str = "mse",
        clip: float | None = None,
        bn: str = "joint",
        scaling: str = "source",
        components: int | None = None,
        held_out: float = 0.1,
        threads: int | None = None,
        select: str = "dev",
        evaluate_every: int | None = None,
        refresh_every: int = 50,
        random_state: int | np.random.RandomState | None = 0,
        split_seed: int | None = None,
        device: str = "auto",
        precision: str = "32",
        deterministic: bool = False,
        skip_nonfinite: int = 0,
    ) -> None:
        self.method = method
        self.target_loss = target_loss
        self.scheme = scheme
        self.guide = guide
        self.loss_weights = loss_weights
        self.joined = joined
        self.head_losses = head_losses
        self.options = options
        self.voting = voting
        self.every = every
        self.average = average
        self.calibrate = calibrate
        self.bottleneck = bottleneck
        self.dropout = dropout
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.decay = decay
        self.source_loss = source_loss
        self.clip = clip
        self.bn = bn
        self.scaling = scaling
        self.components = components
        self.held_out = held_out
        self.threads = threads
        self.select = select
        self.evaluate_every = evaluate_every
        self.refresh_every = refresh_every
        self.random_state = random_state
        self.split_seed = split_seed
        self.device = device
        self.precision = precision
        self.deterministic = deterministic
        self.skip_nonfinite = skip_nonfinite

    def fit(self, X: Any, y: Any = None, sample_domain: Any = None) -> ParetoDARegressor:
        """Train on a source with values and an unlabelled target.

        Args:
            X: Features, shape (n, d): an array, a data frame or a tensor.
            y: Values, shape (n,). Those at target rows are never read and may be anything, NaN included.
            sample_domain: Domain of each row, shape (n,): above 0 for source rows and below 0 for target rows of X.
                With two dimensions, it is the features of the target, and X is the source: `fit(Xs, ys, Xt)`. Without
                it all of X is the source, and nothing is adapted.

        Returns:
            The fitted estimator.

        Raises:
            SettingsError: If a parameter is unknown, out of bounds, or contradicts another.
            ValueError: If the data or the domains cannot be used.
        """
        rows, values, target, _ = split_rows(self, X, y, sample_domain, _check_values)
        settings = change_settings(self, _DEFAULTS)
        settings |= {"method": "source-only", "target_loss": "none"} if target is None else {}
        try:
            self.run_: Run = adapt((rows, values), target, task=REGRESSION, **settings)
        except InterruptedRunError as stop:  # a search over parameters would continue after any other error
            raise KeyboardInterrupt(str(stop)) from stop
        self.history_ = self.run_.history
        self.scores_ = self.run_.scores
        self.warnings_ = self.run_.sentences
        return self

    def predict(self, X: Any, sample_domain: Any = None) -> NDArray[np.float64]:
        """Return the values, shape (n,), in the units of y.

        Args:
            X: Features, shape (n, d).
            sample_domain: Domain of each row, shape (n,), as in `fit`; None if all rows are of the target.
        """
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False)
        source = np.zeros(len(rows), bool) if sample_domain is None else check_domains(sample_domain, len(rows)) > 0
        values = np.empty(len(rows))
        for predictor, chosen in ((self.run_.source_model, source), (self.run_.model, ~source)):
            if chosen.any():
                values[chosen] = _predict_rows(predictor, rows[chosen])
        return values

    def score(self, X: Any, y: Any, sample_domain: Any = None, sample_weight: Any = None) -> float:
        """Return R² on rows with values.

        Args:
            X: Features, shape (n, d).
            y: Values, shape (n,).
            sample_domain: Domain of each row, shape (n,), as in `fit`; None if all rows are of the target.
            sample_weight: Weight of each row, shape (n,); None for equal weights.
        """
        return float(r2_score(to_numpy(y), self.predict(X, sample_domain), sample_weight=sample_weight))


def _predict_rows(predictor: RegressionPredictor, rows: Array) -> NDArray[np.float64]:
    """Return the values of rows, in float64 so that the value of a row does not depend on the other rows."""
    device = next(predictor.model.parameters()).device
    exact = copy.deepcopy(predictor.model).double()
    outputs = predict(exact, (batch.double() for batch in make_batches(predictor, rows)), device=device)[1]
    return predictor.in_units(outputs.numpy())


def _check_values(y: Any) -> Array:
    """Return finite float64 values, shape (n,)."""
    values = check_array(to_numpy(y), ensure_2d=False, dtype=np.float64, input_name="y")
    return np.asarray(column_or_1d(values, warn=True))
