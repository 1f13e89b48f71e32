"""CDAN: a discriminator of features and predictions together cannot tell the domains apart (Long et al., 2018)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.differentiation import call_frozen
from paretoda.objectives.parts.discriminator import Discriminator, domain_cross_entropy, warm_up
from paretoda.objectives.parts.weights import domain_weights
from paretoda.objectives.target.information import entropies
from paretoda.types import Domain, Objective, Source, Target

_WIDEST = 4096
"""Largest K d for which outer products are computed explicitly, as in the paper."""


def multilinear(features: Tensor, predictions: Tensor) -> Tensor:
    """Outer product g ⊗ f of every row, flattened; its inner products are <f, f'> <g, g'>.

    Args:
        features: Features f, shape (n, d).
        predictions: Predictions g, shape (n, K).

    Returns:
        Shape (n, K d).

    Examples:
        >>> multilinear(torch.ones(8, 4), torch.ones(8, 3)).shape
        torch.Size([8, 12])
    """
    return (predictions.unsqueeze(2) * features.unsqueeze(1)).flatten(1)


def randomised_multilinear(features: Tensor, predictions: Tensor, project: Tensor, predict: Tensor) -> Tensor:
    """(R_f f) ⊙ (R_g g) / √r: random projections with the inner products of `multilinear` in expectation over R.

    Args:
        features: Features f, shape (n, d).
        predictions: Predictions g, shape (n, K).
        project: R_f, standard normal, drawn once, shape (d, r).
        predict: R_g, standard normal, drawn once, shape (K, r).

    Returns:
        Shape (n, r).
    """
    return (features @ project) * (predictions @ predict) / math.sqrt(project.shape[1])


def certainty_weights(source: Tensor, target: Tensor, balance: Literal["joint", "per-domain"]) -> tuple[Tensor, Tensor]:
    """1 + exp(-H) of every prediction, divided by its (constant) mean.

    Before the division the weights range from 1 + 1/K for a uniform prediction to 2 for a certain one.

    Args:
        source: Logits of the source, shape (n, K).
        target: Logits of the target, shape (m, K).
        balance: "joint": one mean over both domains, each of which counts half; "per-domain": a mean for each domain.

    Returns:
        The weights of the source (n,) and of the target (m,).
    """
    weights = [1 + torch.exp(-entropies(functional.log_softmax(logits, 1))) for logits in (source, target)]
    means = [weight.detach().mean() for weight in weights]
    if balance == "joint":
        means = [(means[0] + means[1]) / 2] * 2
    return weights[0] / means[0], weights[1] / means[1]


class Cdan(Objective):
    """Information that a discriminator of features and predictions has about their domain.

    The predictions are constants here, because a head trained through them would learn to confuse the discriminator.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        hidden: Width of the discriminator; 1024 in the paper.
        warm_up: Whether `advance` raises the strength from 0 to 1; otherwise, and before the first call, it is 1.
        entropy: Weight certain predictions up to twice as much (CDAN+E).
        balance: Set of samples over which the weights have mean 1; "per-domain" is the authors' code.
        entropy_grad: "none": the weights are constants; "reversed": encoder and head lower the objective through the
            weights as well, as in the authors' code.
        conditioning: "multilinear" outer products, "randomised" projections, or "auto": outer products up to K d =
            4096.
        projections: Number r of random projections.

    Raises:
        ValueError: An option has an unknown value.

    Examples:
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> target = Target(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> objective = Cdan(features=4, classes=3)
        >>> objective(source, target).shape, bool(objective.private_loss(source, target) > 0)
        (torch.Size([]), True)
    """

    label_sets = ("closed", "partial", "open")

    def __init__(  # noqa: PLR0913 - every option is one of the paper's or of its code's
        self,
        features: int,
        classes: int,
        *,
        hidden: int = 256,
        warm_up: bool = True,
        entropy: bool = False,
        balance: Literal["joint", "per-domain"] = "joint",
        entropy_grad: Literal["none", "reversed"] = "none",
        conditioning: Literal["auto", "multilinear", "randomised"] = "auto",
        projections: int = 1024,
    ) -> None:
        super().__init__()
        _check("balance", balance, ("joint", "per-domain"))
        _check("entropy_grad", entropy_grad, ("none", "reversed"))
        _check("conditioning", conditioning, ("auto", "multilinear", "randomised"))
        self.warm_up, self.entropy, self.balance, self.entropy_grad = warm_up, entropy, balance, entropy_grad
        self.strength = 1.0
        if conditioning == "auto":
            conditioning = "multilinear" if classes * features <= _WIDEST else "randomised"
        self.conditioning = conditioning
        if conditioning == "randomised":
            self.register_buffer("project", torch.randn(features, projections))
            self.register_buffer("predict", torch.randn(classes, projections))
        inputs = classes * features if conditioning == "multilinear" else projections
        self.discriminator = Discriminator(inputs, hidden)

    def combine(self, domain: Domain) -> Tensor:
        """Features and (constant) predictions as one row for each sample."""
        predictions = domain.logits.detach().softmax(1)
        if self.conditioning == "multilinear":
            return multilinear(domain.features, predictions)
        return randomised_multilinear(
            domain.features, predictions, self.get_buffer("project"), self.get_buffer("predict")
        )

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the strength times (log 2 minus the discriminator's cross-entropy)."""
        rows = torch.cat([self.combine(source), self.combine(target)])
        scores = call_frozen(self.discriminator, rows, "batch" if self.training else "running").squeeze(1)
        weights = self._weights(source, target, constant=self.entropy_grad == "none")
        return self.strength * (math.log(2) - self._cross_entropy(scores, len(source.features), weights))

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Return the discriminator's cross-entropy on detached features."""
        rows = torch.cat([self.combine(source), self.combine(target)]).detach()
        scores = self.discriminator(rows, "learn" if self.training else "running").squeeze(1)
        weights = self._weights(source, target, constant=True)
        return self._cross_entropy(scores, len(source.features), weights)

    def advance(self, progress: float) -> None:
        """Set the strength for this share of the training."""
        self.strength = warm_up(progress) if self.warm_up else 1.0

    @property
    def offset(self) -> float:
        """Loss of a discriminator that knows nothing."""
        return math.log(2)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"conditioning={self.conditioning!r}, entropy={self.entropy}, warm_up={self.warm_up}"

    def _weights(self, source: Source, target: Target, *, constant: bool) -> tuple[Tensor, Tensor] | None:
        given = domain_weights(source, target)
        if not self.entropy:
            return given
        logits = (source.logits.detach(), target.logits.detach()) if constant else (source.logits, target.logits)
        own = certainty_weights(*logits, self.balance)
        return own if given is None else (own[0] * given[0], own[1] * given[1])

    @staticmethod
    def _cross_entropy(scores: Tensor, sources: int, weights: tuple[Tensor, Tensor] | None) -> Tensor:
        return domain_cross_entropy(scores[:sources], scores[sources:], weights)


def _check(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
