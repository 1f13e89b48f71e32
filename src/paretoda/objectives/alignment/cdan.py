"""CDAN: features and predictions together, from which a discriminator cannot tell the domains (Long et al., 2018)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.differentiation import frozen
from paretoda.objectives.parts.discriminator import Discriminator, domain_cross_entropy, warm_up
from paretoda.objectives.target.entropy import entropies
from paretoda.types import Domain, Objective, Source, Target

_WIDEST = 4096
"""Largest K d whose outer products are written out, as in the paper."""


def multilinear(features: Tensor, predictions: Tensor) -> Tensor:
    """The outer product g ⊗ f of every row, flattened: its inner products are <f, f'> <g, g'>.

    Args:
        features: f, shape (n, d).
        predictions: g, shape (n, K).

    Returns:
        Shape (n, K d).
    """
    return (predictions.unsqueeze(2) * features.unsqueeze(1)).flatten(1)


def randomised(features: Tensor, predictions: Tensor, project: Tensor, predict: Tensor) -> Tensor:
    """(R_f f) ⊙ (R_g g) / √r: in expectation over R, the inner products of `multilinear`.

    Args:
        features: f, shape (n, d).
        predictions: g, shape (n, K).
        project: R_f, standard normal, drawn once, shape (d, r).
        predict: R_g, likewise, shape (K, r).

    Returns:
        Shape (n, r).
    """
    return (features @ project) * (predictions @ predict) / math.sqrt(project.shape[1])


def certainty_weights(source: Tensor, target: Tensor, balance: Literal["joint", "per-domain"]) -> tuple[Tensor, Tensor]:
    """1 + exp(-H) of every prediction, divided by its (constant) mean: from 1 + 1/K, uniform, to 2, certain.

    Args:
        source: logits, shape (n, K).
        target: logits, shape (m, K).
        balance: "joint": one mean over both domains, each counting half; "per-domain": each domain by its own.
    """
    weights = [1 + torch.exp(-entropies(functional.log_softmax(logits, 1))) for logits in (source, target)]
    means = [weight.detach().mean() for weight in weights]
    if balance == "joint":
        means = [(means[0] + means[1]) / 2] * 2
    return weights[0] / means[0], weights[1] / means[1]


class Cdan(Objective):
    """What a discriminator of features and predictions together knows about their domain.

    The predictions are constants here: a head that could be trained through them would learn to confuse.

    Args:
        features: width d of the features.
        classes: number of classes K.
        hidden: width of the discriminator; 1024 in the paper.
        warm_up: whether `advance` raises the strength from 0 to 1; without it, and before the first call, it is 1.
        entropy: weigh certain predictions up to twice as much (CDAN+E).
        balance: over what the weights have mean 1; "per-domain" is the authors' code.
        entropy_grad: "none": weights are constants; "reversed": encoder and head lower the objective through the
            weights as well, as in the authors' code.
        conditioning: outer products, random projections, or "auto": outer products up to K d = 4096.
        projections: number r of random projections.
    """

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

    def joined(self, domain: Domain) -> Tensor:
        """Features and (constant) predictions as one row for each sample."""
        predictions = domain.logits.detach().softmax(1)
        if self.conditioning == "multilinear":
            return multilinear(domain.features, predictions)
        return randomised(domain.features, predictions, self.get_buffer("project"), self.get_buffer("predict"))

    def forward(self, source: Source, target: Target) -> Tensor:
        """Strength times (log 2 minus the discriminator's cross-entropy)."""
        rows = torch.cat([self.joined(source), self.joined(target)])
        scores = frozen(self.discriminator, rows, "batch" if self.training else "running").squeeze(1)
        weights = self._weights(source, target, constant=self.entropy_grad == "none")
        return self.strength * (math.log(2) - self._cross_entropy(scores, len(source.features), weights))

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """The discriminator's cross-entropy, on detached features."""
        rows = torch.cat([self.joined(source), self.joined(target)]).detach()
        scores = self.discriminator(rows, "learn" if self.training else "running").squeeze(1)
        weights = self._weights(source, target, constant=True)
        return self._cross_entropy(scores, len(source.features), weights)

    def advance(self, progress: float) -> None:
        """Set the strength to that of this share of the training."""
        self.strength = warm_up(progress) if self.warm_up else 1.0

    def extra_repr(self) -> str:
        """Settings."""
        return f"conditioning={self.conditioning!r}, entropy={self.entropy}, warm_up={self.warm_up}"

    def _weights(self, source: Source, target: Target, *, constant: bool) -> tuple[Tensor, Tensor] | None:
        if not self.entropy:
            return None
        if constant:
            return certainty_weights(source.logits.detach(), target.logits.detach(), self.balance)
        return certainty_weights(source.logits, target.logits, self.balance)

    @staticmethod
    def _cross_entropy(scores: Tensor, sources: int, weights: tuple[Tensor, Tensor] | None) -> Tensor:
        return domain_cross_entropy(scores[:sources], scores[sources:], weights)


def _check(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
