"""MDAN: the encoder lowers risk and divergence of the source for which their sum is worst (Zhao et al., 2018)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretoda.objectives.alignment.dann import divergence
from paretoda.objectives.parts.differentiation import call_frozen
from paretoda.objectives.parts.discriminator import Discriminator, Statistics, domain_cross_entropy, warm_up
from paretoda.types import Objective, Source, Target


def soft_maximum(values: Tensor, sharpness: float) -> Tensor:
    """log(Σ exp(γ v)) / γ: at least the maximum, and nearer to it the larger γ is.

    Args:
        values: v, shape (n,).
        sharpness: γ.

    Examples:
        >>> soft_maximum(torch.tensor([2.0]), 10.0)
        tensor(2.)
    """
    return (sharpness * values).logsumexp(0) / sharpness


class Mdan(Objective):
    """The largest sum, over the sources, of a source's cross-entropy and of its divergence from the target.

    It is the whole method: there is no other loss on the sources. The divergences are those of DANN, each by a
    discriminator of its own. With one source the sum is that of the source loss and DANN.

    Args:
        features: Width d of the features.
        classes: Number of classes (not used).
        sources: Number of sources.
        maximum: "soft", the paper's smooth bound of the maximum, or "hard", the maximum itself.
        sharpness: γ of the soft maximum, the authors' 10.
        hidden: Width of the discriminators.
        warm_up: Whether `advance` raises the strength of the divergences from 0 to 1; otherwise it is 1.
        smoothing: Share of every label that is spread evenly over the classes.

    Raises:
        ValueError: An option is out of its range.

    Examples:
        >>> index = torch.arange(8)
        >>> features, logits = torch.randn(8, 4), torch.randn(8, 3)
        >>> source = Source(features, logits, index, labels=index % 3, domain=index % 2)
        >>> Mdan(4, 3, sources=2)(source, Target(features, logits, index)).shape
        torch.Size([])
    """

    reads_all_sources = True
    is_whole_method = True

    def __init__(  # noqa: PLR0913 - the options of DANN and of the paper
        self,
        features: int,
        classes: int,
        *,
        sources: int = 1,
        maximum: Literal["soft", "hard"] = "soft",
        sharpness: float = 10.0,
        hidden: int = 256,
        warm_up: bool = True,
        smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        if maximum not in ("soft", "hard"):
            raise ValueError(f"maximum must be 'soft' or 'hard', got {maximum!r}")
        if not 0 < sharpness < float("inf"):
            raise ValueError(f"sharpness must be positive, got {sharpness}")
        self.features, self.classes = features, classes
        self.maximum, self.sharpness, self.warm_up, self.smoothing = maximum, sharpness, warm_up, smoothing
        self.strength = 1.0
        self.discriminators = nn.ModuleList([Discriminator(features, hidden) for _ in range(sources)])

    def sums(self, source: Source, target: Target) -> Tensor:
        """Return cross-entropy plus strength times divergence of each source, shape (sources,)."""
        found = []
        for number, network in enumerate(self.discriminators):
            own = source.of(number)
            rows = torch.cat([own.features, target.features])
            scores = call_frozen(network, rows, "batch" if self.training else "running").squeeze(1)
            apart = divergence(scores[: len(own.features)], scores[len(own.features) :])
            risk = functional.cross_entropy(own.logits, own.labels, label_smoothing=self.smoothing)
            found.append(risk + self.strength * apart)
        return torch.stack(found)

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the hard or soft maximum over the sources."""
        sums = self.sums(source, target)
        return sums.max() if self.maximum == "hard" else soft_maximum(sums, self.sharpness)

    def private_loss(self, source: Source, target: Target) -> Tensor:
        """Return the sum of the discriminators' cross-entropies on detached features."""
        statistics: Statistics = "learn" if self.training else "running"
        losses = []
        for number, network in enumerate(self.discriminators):
            own = source.of(number).features
            scores = network(torch.cat([own, target.features]).detach(), statistics).squeeze(1)
            losses.append(domain_cross_entropy(scores[: len(own)], scores[len(own) :]))
        return torch.stack(losses).sum()

    def advance(self, progress: float) -> None:
        """Set the strength for this share of the training."""
        self.strength = warm_up(progress) if self.warm_up else 1.0

    @property
    def offset(self) -> float:
        """Divergence of a discriminator that knows nothing."""
        return math.log(2)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"maximum={self.maximum!r}, sharpness={self.sharpness}, warm_up={self.warm_up}"
