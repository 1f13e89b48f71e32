"""Soft neighbourhood density: predictions that agree with many similar samples (Saito et al., 2021).

The density alone is highest, log(n - 1), where all predictions are alike: collapsed to one class, or all undecided. So
it is discounted where the predictions carry little information; `needed=0` gives the published score.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import torch
from torch import Tensor
from torch.nn.functional import normalize

from paretoda.evaluation.validators.information import mutual_information
from paretoda.evaluation.validators.validator import draw_samples
from paretoda.types import Snapshot

_CHUNK = 2**22
"""Number of similarities held at a time: 32 MB."""


def neighbourhood_density(probabilities: Tensor, temperature: float = 0.05) -> float:
    """Mean entropy of softmax(cosine / temperature) over all other samples: log 2 for clusters of three one-hots.

    Args:
        probabilities: Probabilities, shape (n, K).
        temperature: Temperature of the softmax over neighbours.
    """
    rows = normalize(probabilities.double(), dim=1)
    n, step = len(rows), max(1, _CHUNK // len(rows))
    total = 0.0
    for start in range(0, n, step):
        similarity = rows[start : start + step] @ rows.T / temperature
        here = torch.arange(len(similarity), device=rows.device)
        similarity[here, here + start] = -1 / temperature
        log_weight = similarity.log_softmax(dim=1)
        total -= float((log_weight.exp() * log_weight).sum())
    return total / n


@dataclass(frozen=True)
class SND:
    """Density of the target's predictions, times min(1, information / (needed · log K)).

    Args:
        temperature: Temperature of the softmax over neighbours.
        needed: Share of log K that the mutual information must reach for the full density to count.
        samples: Largest number of samples that are compared with one another.
        seed: Seed of their choice.

    Examples:
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Target
        >>> logits = 100 * torch.eye(3).repeat(3, 1)  # three clusters of three
        >>> snapshot = SimpleNamespace(target=Target(torch.zeros(9, 2), logits, torch.arange(9)))
        >>> round(SND()(snapshot), 4)  # log 2
        0.6931
    """

    temperature: float = 0.05
    needed: float = 0.5
    samples: int = 10_000
    seed: int = 0

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, in 0..log(n - 1)."""
        target = snapshot.target
        logits = target.logits[draw_samples(target.index, self.samples, self.seed).to(target.logits.device)]
        density = neighbourhood_density(logits.double().softmax(dim=1), self.temperature)
        enough = self.needed * log(logits.shape[1])
        share = mutual_information(logits) / enough if enough > 0 else 1.0
        return density * min(1.0, max(0.0, share))
