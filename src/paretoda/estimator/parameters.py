"""The parameters of both estimators: the settings of a run that make sense for arrays, with the same defaults."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from paretoda.run.names import ALONE
from paretoda.run.settings import Settings, make_settings

NOT_FOR_ARRAYS = frozenset(
    {
        "task",
        "backbone",
        "backbone_weights",
        "frozen",
        "image_size",
        "augment",
        "crops",
        "skip_bad",
        "checkpoint_every",
        "track",
    }
).union(
    ALONE["segmentation"],
    ("accumulate", "checkpoint_activations", "compile", "channels_last"),
    ("workers", "index_cache", "sync_bn"),
)
"""Settings of images, of scenes, of large networks and of run directories; an estimator has none of them."""


class Parameters(BaseEstimator):  # type: ignore[misc]
    """Stores the parameters as they are; `fit` checks them.

    scikit-learn reads the names and defaults from the signature, so they stand here one by one.
    """

    def __init__(  # noqa: PLR0913
        self,
        method: str = "dann",
        target_loss: str = "tcm+propagation",
        scheme: str = "paretoda",
        guide: str = "agreement",
        *,
        loss_weights: tuple[float, ...] = (),
        joined: bool = False,
        head_losses: tuple[str, ...] | None = None,
        options: tuple[str, ...] = (),
        voting: str = "all",
        every: int = 1,
        average: float | None = None,
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
        held_out: float = 0.1,
        class_balanced: bool = False,
        select: str = "ensemble",
        evaluate_every: int | None = None,
        refresh_every: int = 50,
        reference: bool | None = None,
        random_state: int | np.random.RandomState | None = 0,
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
        self.held_out = held_out
        self.class_balanced = class_balanced
        self.select = select
        self.evaluate_every = evaluate_every
        self.refresh_every = refresh_every
        self.reference = reference
        self.random_state = random_state
        self.device = device
        self.precision = precision
        self.deterministic = deterministic
        self.skip_nonfinite = skip_nonfinite

    def _settings(self) -> dict[str, Any]:
        """What `paretoda.adapt` is told, checked: only what differs from the defaults.

        So `method="source-only"` or `method="dann+im"` says as much here as it does on the command line.
        """
        given = self.get_params(deep=False)
        seed = given.pop("random_state")
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(2**31 - 1)
        given["seed"] = int(seed)
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
        fields = Settings.model_fields
        told = {name: value for name, value in plain.items() if value != fields[name].default}
        make_settings(told)
        return told
