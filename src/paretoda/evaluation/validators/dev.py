"""Source risk, and deep embedded validation (DEV): source errors weighted by density ratio (You et al., 2019)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from paretoda.evaluation.validators.validator import draw_samples, project_features
from paretoda.types import Domain, Snapshot

Array = NDArray[np.float64]

_STOP: Any = {"gtol": 1e-4, "ftol": 1e-10}
"""When L-BFGS has converged."""


def zero_one(logits: Tensor, labels: Tensor) -> Tensor:
    """1 where the prediction is wrong, 0 where it is right: shape (n,), float64.

    Args:
        logits: Logits, shape (n, K).
        labels: Labels, shape (n,).
    """
    return (logits.argmax(dim=1) != labels).double()


def squared_error(logits: Tensor, labels: Tensor) -> Tensor:
    """Squared errors of predicted values, in units of the source's variance: shape (n,), float64.

    Args:
        logits: Predicted standardised values, shape (n, 1).
        labels: Standardised values, shape (n,).

    Examples:
        >>> squared_error(torch.tensor([[1.0], [3.0]]), torch.tensor([1.0, 1.0])).tolist()
        [0.0, 4.0]
    """
    return (logits[:, 0].double() - labels.double()).square()


Errors: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Logits (n, K) and labels (n,) -> the error of each sample."""


@dataclass(frozen=True)
class SourceRisk:
    """Minus the error on the held-out source. It says nothing about the target, only that the task is still solved.

    Args:
        errors: Error of each sample; by default 1 for a wrong class.

    Examples:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Source
        >>> labels = torch.tensor([0, 1, 0, 0])
        >>> held_out = Source(torch.zeros(4, 2), torch.eye(2).repeat(2, 1), torch.arange(4), labels=labels)
        >>> SourceRisk()(SimpleNamespace(held_out_source=held_out))
        -0.25
    """

    errors: Errors = zero_one

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, for classes in -1..0."""
        held_out = snapshot.held_out_source
        return -float(self.errors(held_out.logits, held_out.labels).mean())


def dev_risk(weights: Array, losses: Array) -> float:
    """mean(w ℓ) + η (mean w - 1), with η = -Cov(w ℓ, w) / Var(w): the control variate uses that E w = 1.

    Args:
        weights: Density ratios p_target / p_source of the samples, shape (n,).
        losses: Losses, shape (n,).

    Examples:
        >>> dev_risk(np.ones(4), np.array([0.0, 0.0, 0.0, 1.0]))
        0.25
    """
    weighted = weights * losses
    spread = np.var(weights, ddof=1) if len(weights) > 1 else 0.0
    if spread <= 1e-12 * np.mean(weights) ** 2:  # equal weights: nothing to control for
        return float(weighted.mean())
    eta = -np.cov(weighted, weights, ddof=1)[0, 1] / spread
    return float(weighted.mean() + eta * (weights.mean() - 1))


def truncate_weights(weights: Array) -> Array:
    """Limit the weights to √n times their mean, so that one huge weight does not decide alone (Ionides, 2008)."""
    cap: Array = np.sqrt(len(weights)) * np.mean(weights)
    return np.minimum(weights, cap)


def density_ratio(source: Array, target: Array, points: Array, decays: tuple[float, ...]) -> Array:
    """p_target / p_source at the points, by the logistic regression that makes every fifth sample most likely.

    The published code keeps the most accurate one. Accuracy cannot distinguish odds of 2 from odds of 20, and these are
    the weights: for two Gaussians 1.5 apart a risk of 0.70 was estimated as 0.40, by likelihood as 0.70.

    Args:
        source: Features, shape (n_s, d), in random order.
        target: Features, shape (n_t, d), in random order.
        points: Features, shape (n, d).
        decays: Weight decays to choose from, the strongest first; it wins a tie.

    Returns:
        Shape (n,).
    """
    x, y = np.concatenate([source, target]), np.repeat([0.0, 1.0], [len(source), len(target)])
    held_out = np.concatenate([np.arange(len(source)), np.arange(len(target))]) % 5 == 4
    mean, spread = x[~held_out].mean(axis=0), x[~held_out].std(axis=0)
    spread[spread == 0] = 1
    x, points = (x - mean) / spread, (points - mean) / spread
    models = fit_logistic(x[~held_out], y[~held_out], decays)
    fit = [_log_likelihood(_log_odds(model, x[held_out]), y[held_out]) for model in models]
    targets = y[~held_out].mean()
    log_odds = _log_odds(models[int(np.argmax(fit))], points)
    ratio: Array = (1 - targets) / targets * np.exp(np.clip(log_odds, -50, 50))
    return ratio


def fit_logistic(x: Array, y: Array, decays: tuple[float, ...]) -> list[Array]:
    """Minimise the mean logistic loss plus decay / 2 |w|² for every decay, each started from the solution before.

    The unknowns are scaled along the principal axes of the rows by (λ / 4 + decay)^-1/2, a bound of the curvature. In
    them the problem is well conditioned, and a dozen evaluations find its only solution, which depends on nothing else.

    Args:
        x: Rows of mean 0, shape (n, d).
        y: Labels 0 or 1, shape (n,).
        decays: Weight decays.

    Returns:
        For every decay the coefficients w and, last, the constant: shape (d + 1,).
    """
    rows, labels = torch.from_numpy(x), torch.from_numpy(y)
    curvature, axes = torch.linalg.eigh(rows.T @ rows / len(rows))
    rotated = rows @ axes
    found, solution = [], torch.zeros(x.shape[1] + 1, dtype=torch.float64)
    for decay in decays:
        scale = (torch.cat([curvature.clamp(min=0), torch.ones(1)]) / 4 + decay).rsqrt()

        def loss_and_gradient(unknowns: Array, decay: float = decay, scale: Tensor = scale) -> tuple[float, Array]:
            weights = torch.from_numpy(unknowns) * scale
            scores = torch.addmv(weights[-1].expand(len(rotated)), rotated, weights[:-1])
            errors = (scores.sigmoid() - labels) / len(labels)
            slope = torch.cat([rotated.T @ errors + decay * weights[:-1], errors.sum().reshape(1)])
            loss = torch.nn.functional.softplus(scores).mean() - (labels * scores).mean()
            return float(loss + decay / 2 * weights[:-1].square().sum()), (slope * scale).numpy()

        result = minimize(loss_and_gradient, (solution / scale).numpy(), method="L-BFGS-B", jac=True, options=_STOP)
        solution = torch.from_numpy(result.x) * scale
        found.append(torch.cat([axes @ solution[:-1], solution[-1:]]).numpy())
    return found


def _log_odds(model: Array, x: Array) -> Array:
    odds: Array = x @ model[:-1] + model[-1]
    return odds


def _log_likelihood(log_odds: Array, y: Array) -> float:
    return -float(np.logaddexp(0, (1 - 2 * y) * log_odds).mean()) if len(y) else 0.0


@dataclass(frozen=True)
class DEV:
    """Minus the estimated risk on the target: the errors on the held-out source, weighted by density ratio.

    Args:
        decays: Weight decays of the domain classifier, the strongest first.
        samples: Largest number of samples of each domain that it is trained on.
        seed: Seed of their choice, and of the projections.
        widest: Largest number of features; of more, so many random projections are taken.
        errors: Error of each sample; by default 1 for a wrong class.

    Examples:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Source, Target
        >>> features, labels = torch.arange(20.0).reshape(20, 1), torch.arange(20) % 2
        >>> source = Source(features, torch.eye(2)[labels], torch.arange(20), labels=labels)  # always right
        >>> target = Target(features, source.logits, torch.arange(20))
        >>> abs(DEV()(SimpleNamespace(source=source, held_out_source=source, target=target)))
        0.0
    """

    decays: tuple[float, ...] = (1.0, 1e-1, 1e-2, 1e-3)
    samples: int = 2_000
    seed: int = 0
    widest: int = 256
    errors: Errors = zero_one

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, for classes about -1..0; the control variate may leave the interval."""
        held_out = snapshot.held_out_source
        losses = self.errors(held_out.logits, held_out.labels).cpu().numpy()
        return -dev_risk(truncate_weights(self.weights(snapshot)), losses)

    def weights(self, snapshot: Snapshot) -> Array:
        """Density ratios of the held-out source's samples, shape (n,)."""
        drawn = self._draw(snapshot.source), self._draw(snapshot.target), snapshot.held_out_source.features.cpu()
        source, target, points = map(self._project, drawn)
        return density_ratio(source, target, points, self.decays)

    def _draw(self, domain: Domain) -> Tensor:
        return domain.features.cpu()[draw_samples(domain.index, self.samples, self.seed)]

    def _project(self, features: Tensor) -> Array:
        projected: Array = project_features(features, self.widest, self.seed).double().numpy()
        return projected
