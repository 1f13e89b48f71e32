"""TCM: information of the target's predictions, refined by class-wise discriminators (Lv et al., 2021).

The discriminator of a class says how much a sample resembles the target's part of that class; Bayes' rule combines this
with the classifier's prediction. Everything is computed in log space, because probabilities may underflow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.parts.class_discriminators import (
    ClassDiscriminators,
    balanced_discriminator_loss,
    discriminator_loss,
    released_discriminator_loss,
)
from paretoda.objectives.parts.class_prior import ClassPrior
from paretoda.objectives.parts.differentiation import call_frozen
from paretoda.objectives.parts.discriminator import Discriminator, learn_deferred
from paretoda.objectives.parts.step_cache import StepCache
from paretoda.objectives.target.information import RunningMarginal, WholeMarginal, missing_information
from paretoda.types import Objective, Snapshot, Source, Target

_AT_ONCE = 1024
"""Samples whose refined predictions are computed at a time; each has K hidden layers."""


def bayes(logits: Tensor, log_q: Tensor) -> Tensor:
    """Eq. 3, refined predictions by Bayes' rule: log ρ, with ρ_k = p_k q_k / Σ p q.

    Args:
        logits: Logits of the classifier, shape (n, K); p is their softmax.
        log_q: log of the probability of "target" by the discriminator of class k, shape (n, K).

    Returns:
        Shape (n, K).

    Examples:
        >>> bayes(torch.zeros(1, 2), torch.tensor([[0.75, 0.25]]).log()).exp()
        tensor([[0.7500, 0.2500]])
    """
    return functional.log_softmax(functional.log_softmax(logits, 1) + log_q, 1)


def logit_product(logits: Tensor, log_q: Tensor) -> Tensor:
    """Logarithm of softmax(logits ⊙ q), which the authors' code has in the place of `bayes`; same shapes."""
    return functional.log_softmax(logits * log_q.exp(), 1)


class Tcm(Objective):
    """Missing information of the refined predictions of the target.

    Args:
        features: Width d of the features.
        classes: Number of classes K.
        width: Width of the discriminators' hidden layers; 1024 in the paper.
        light: The K discriminators share their hidden layers, for many classes.
        refine: "bayes" as in the paper, or "logit" as in the authors' code.
        released_loss: Train the discriminators as the authors' code does.
        balanced: Train them with equal weight for both domains in every class.
        detach: The encoder's gradient comes from the predictions only; False: from the discriminators' scores as well.
        paper_literal: Eq. 5 as printed, minus the information, between -log min(n, K) and 0.
        momentum: Momentum of a running mean of ρ, in 0..1, for batches of few images; with 0 the batch's own mean is
            used.
        marginal: "batch": the mean of ρ is the batch's own, or the running one; "whole": that of the whole target, as
            printed in the paper, computed again at every refresh.
        prior: Desired frequencies of the classes, K numbers; None: equal frequencies, as in the paper.
        shift: The prior is that of the source and moves to the target as described in `ClassPrior`.
        floor: Lower bound of log q in Eq. 3, so that no discriminator can rule out its class; None: no bound.

    Raises:
        ValueError: An option is unknown, out of its range, or contradicts another.

    Examples:
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> target = Target(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8))
        >>> objective = Tcm(features=4, classes=3, width=8)
        >>> bool(objective(source, target) >= 0), bool(objective.private_loss(source, target) > 0)
        (True, True)
    """

    def __init__(  # noqa: PLR0913 - every option is one of the paper's or of its code's
        self,
        features: int,
        classes: int,
        *,
        width: int = 128,
        light: bool = False,
        refine: Literal["bayes", "logit"] = "bayes",
        released_loss: bool = False,
        balanced: bool = False,
        detach: bool = True,
        paper_literal: bool = False,
        momentum: float = 0.0,
        marginal: Literal["batch", "whole"] = "batch",
        prior: Sequence[float] | None = None,
        shift: bool = False,
        floor: float | None = None,
    ) -> None:
        super().__init__()
        if refine not in ("bayes", "logit"):
            raise ValueError(f"refine must be 'bayes' or 'logit', got {refine!r}")
        if paper_literal and (shift or prior is not None):
            raise ValueError("paper_literal is Eq. 5 as printed, which has no prior")
        if floor is not None and (refine == "logit" or not -math.inf < floor <= 0):
            raise ValueError(f"floor is a logarithm of q, 0 or less, for refine='bayes', got {floor} and {refine!r}")
        if balanced and released_loss:
            raise ValueError("released_loss is the authors' code, whose discriminators are not balanced")
        self.refine, self.floor, self.balanced = refine, floor, balanced
        self.released_loss, self.detach, self.paper_literal = released_loss, detach, paper_literal
        self.width, self.light = width, light
        self._scored: StepCache[Tensor] = StepCache()
        self.marginal = _make_marginal(marginal, classes, momentum)
        self.prior = ClassPrior(classes, prior, shift=shift)
        self.discriminators: nn.Module = (
            Discriminator(features, width, classes) if light else ClassDiscriminators(features, classes, width)
        )

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the loss of Eq. 5 as the missing information; with `paper_literal`, minus the information."""
        scores = self._scores(source, target)[len(source.features) :]
        refined = self._refine(target.logits, functional.logsigmoid(-scores))
        found = missing_information(refined, self.prior.log, self.marginal)
        if not self.paper_literal:
            return found
        return found - math.log(min(refined.shape) if self.marginal is None else refined.shape[1])

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Return the loss of the discriminators on detached features."""
        scores = self._scored.take(source)
        if scores is None:
            rows = torch.cat([source.features, target.features]).detach()
            scores = self.discriminators(rows, "learn" if self.training else "running")
        else:
            learn_deferred(self.discriminators)
        of_source, of_target = scores[: len(source.features)], scores[len(source.features) :]
        logits, log_q = target.logits.detach(), functional.logsigmoid(-of_target.detach())
        if self.training:
            self.prior.learn(source, target)
        if isinstance(self.marginal, RunningMarginal) and self.training:
            self.marginal.learn(self._refine(logits, log_q))
        if self.released_loss:
            return released_discriminator_loss(of_source, source.labels, of_target, logits * log_q.exp())
        weights = self._refine(logits, log_q).exp()
        loss = balanced_discriminator_loss if self.balanced else discriminator_loss
        return loss(of_source, source.labels, of_target, weights)

    def _scores(self, source: Source, target: Target) -> Tensor:
        """Return the discriminators' scores of both domains, differentiable in the features at most."""
        rows = torch.cat([source.features, target.features])
        if not self.training:
            return call_frozen(self.discriminators, rows.detach() if self.detach else rows, "running")
        if not self.detach:
            return call_frozen(self.discriminators, rows, "batch")
        # The encoder takes them as constants, so that `private_loss` can use the same pass.
        scores: Tensor = self.discriminators(rows.detach(), "defer")
        return self._scored.keep(source, scores).detach()

    @property
    def refreshes(self) -> bool:
        """Whether the mean prediction is that of the whole target."""
        return isinstance(self.marginal, WholeMarginal)

    @torch.no_grad()
    def refresh(self, snapshot: Snapshot) -> None:
        """Compute the mean of ρ over the training part of the target, where the loss takes that one."""
        if not isinstance(self.marginal, WholeMarginal):
            return
        target, device = snapshot.target, self.marginal.probabilities.device
        chunks = [slice(start, start + _AT_ONCE) for start in range(0, len(target.logits), _AT_ONCE)]
        found = [self.log_refined(target.features[rows].to(device), target.logits[rows].to(device)) for rows in chunks]
        self.marginal.replace(torch.cat(found))

    def log_refined(self, features: Tensor, logits: Tensor) -> Tensor:
        """Log ρ of samples that nothing was trained on, by the running statistics; no state changes.

        Args:
            features: Features, shape (n, d).
            logits: Logits, shape (n, K).

        Returns:
            Shape (n, K), differentiable in the logits, and in the features unless they are detached.
        """
        scores = call_frozen(self.discriminators, features.detach() if self.detach else features, "running")
        return self._refine(logits, functional.logsigmoid(-scores))

    def refined(self, features: Tensor, logits: Tensor) -> Tensor:
        """ρ for prediction: `log_refined` as probabilities."""
        return self.log_refined(features, logits).exp()

    def settings(self) -> dict[str, int | float | str | bool]:
        """Settings that determine the shape of the state and the refined prediction, as plain values."""
        momentum = self.marginal.momentum if isinstance(self.marginal, RunningMarginal) else 0.0
        shift = self.prior.shift is not None
        floor = {} if self.floor is None else {"floor": self.floor}  # files of older runs have neither
        whole = {"marginal": "whole"} if isinstance(self.marginal, WholeMarginal) else {}
        shape = {"width": self.width, "light": self.light, "refine": self.refine, "momentum": momentum, "shift": shift}
        return {**shape, **floor, **whole}

    def extra_repr(self) -> str:
        """Return the settings that differ from Eq. 3 to 5 with the shift."""
        flags = {
            "released_loss": self.released_loss,
            "balanced": self.balanced,
            "paper_literal": self.paper_literal,
            "attached": not self.detach,
        }
        shown = (
            [f"refine={self.refine!r}"] if self.floor is None else [f"refine={self.refine!r}", f"floor={self.floor}"]
        )
        return ", ".join([*shown, *(name for name, on in flags.items() if on)])

    def _refine(self, logits: Tensor, log_q: Tensor) -> Tensor:
        if self.refine == "logit":
            return logit_product(logits, log_q)
        return bayes(logits, log_q if self.floor is None else log_q.clamp(min=self.floor))


def _make_marginal(kind: str, classes: int, momentum: float) -> RunningMarginal | WholeMarginal | None:
    """Return what replaces the batch's own mean prediction; None: nothing does."""
    if kind not in ("batch", "whole"):
        raise ValueError(f"marginal must be 'batch' or 'whole', got {kind!r}")
    if kind == "whole":
        if momentum:
            raise ValueError(f"marginal='whole' has no running mean: give momentum=0 beside it, not {momentum}")
        return WholeMarginal(classes)
    return RunningMarginal(classes, momentum) if momentum else None
