"""The parameters of both estimators: the settings of a run that make sense for arrays, with the same defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from paretoda.run.result import Run
from paretoda.run.settings import Settings
from paretoda.tasks.settings import make_settings

_DEFAULTS = Settings()


class Parameters(BaseEstimator):  # type: ignore[misc]
    """The base of both estimators: it stores the parameters, and `fit` checks them.

    scikit-learn reads names and defaults from the signature, so they are written out here. A test compares them with
    the fields of `paretoda.run.settings.Settings`.
    """

    def __init__(  # noqa: PLR0913
        self,
        method: str = "dann",
        target_loss: str = "auto+propagation",
        scheme: str = "paretoda",
        guide: str = "agreement",
        *,
        from_run: str | Path | Run | None = None,
        label_sets: str = "closed",
        label_loss: bool | None = None,
        loss_weights: tuple[float, ...] = (),
        joined: bool = False,
        head_losses: tuple[str, ...] | None = None,
        options: tuple[str, ...] = (),
        voting: str | None = None,
        every: int | None = None,
        teacher_decay: float = 0.99,
        average: float | None = None,
        calibrate: bool | None = None,
        bottleneck: int = 256,
        dropout: float | None = None,
        steps: int = 500,
        batch_size: int = 64,
        lr: float | None = None,
        momentum: float = 0.9,
        weight_decay: float = 1e-3,
        schedule: str = "inverse",
        decay: float = 10.0,
        label_smoothing: float = 0.0,
        clip: float | None = None,
        bn: str = "joint",
        scaling: str = "per-domain",
        sources: str = "separate",
        components: int | None = None,
        held_out: float = 0.1,
        class_balanced: bool = False,
        threads: int | None = None,
        select: str = "ensemble",
        evaluate_every: int | None = None,
        refresh_every: int = 50,
        reference: bool | None = None,
        random_state: int | np.random.RandomState | None = 0,
        split_seed: int | None = None,
        members: int = 1,
        device: str = "auto",
        precision: str = "32",
        deterministic: bool = False,
        skip_nonfinite: int = 0,
    ) -> None:
        self.method = method
        self.target_loss = target_loss
        self.scheme = scheme
        self.guide = guide
        self.from_run = from_run
        self.label_sets = label_sets
        self.label_loss = label_loss
        self.loss_weights = loss_weights
        self.joined = joined
        self.head_losses = head_losses
        self.options = options
        self.voting = voting
        self.every = every
        self.teacher_decay = teacher_decay
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
        self.label_smoothing = label_smoothing
        self.clip = clip
        self.bn = bn
        self.scaling = scaling
        self.sources = sources
        self.components = components
        self.held_out = held_out
        self.class_balanced = class_balanced
        self.threads = threads
        self.select = select
        self.evaluate_every = evaluate_every
        self.refresh_every = refresh_every
        self.reference = reference
        self.random_state = random_state
        self.split_seed = split_seed
        self.members = members
        self.device = device
        self.precision = precision
        self.deterministic = deterministic
        self.skip_nonfinite = skip_nonfinite

    def _changed_settings(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults, checked."""
        return change_settings(self, _DEFAULTS)


def change_settings(estimator: BaseEstimator, defaults: Settings) -> dict[str, Any]:
    """Return the settings of an estimator that differ from the defaults of its task, checked.

    The others are left out so that `method="source-only"` or `method="dann+im"` means the same here as on the command
    line.

    Args:
        estimator: Estimator whose parameters are settings, apart from `random_state`.
        defaults: Settings of its task when nothing is given.
    """
    given = estimator.get_params(deep=False)
    seed = given.pop("random_state")
    if not isinstance(seed, (int, np.integer)):
        seed = check_random_state(seed).randint(2**31 - 1)
    given["seed"] = int(seed)
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    changed = {name: value for name, value in plain.items() if value != getattr(defaults, name)}
    make_settings({**changed, "task": defaults.task})
    return changed
