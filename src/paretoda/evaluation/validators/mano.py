"""MaNo: the norm of the matrix of normalised logits, an estimate of accuracy (Xie et al., NeurIPS 2024).

The norm alone is highest where all predictions are certain, whatever they are, so also where all samples are predicted
as one class. Like `snd`, it is discounted where the predictions carry little information; `needed=0` gives the
published score.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from torch import Tensor

from paretoda.evaluation.validators.information import mutual_information
from paretoda.types import Snapshot


def normalise_logits(logits: Tensor, threshold: float = 5.0) -> Tensor:
    """Softmax where the logits are large, 1 + z + z²/2 over its sum where they are not: one decision for all samples.

    The measure is the mean over samples and classes of -log softmax, the divergence of the predictions from uniform
    ones plus log K. The logits of a sample are centred first: softmax does not change if a number is added to all of
    them, but the polynomial does, and the logits of several members are logarithms of probabilities.

    Args:
        logits: Logits, shape (n, K).
        threshold: Largest measure at which the polynomial is used.

    Returns:
        Rows that sum to 1, shape (n, K), float64.

    Examples:
        >>> import torch
        >>> normalise_logits(torch.tensor([[1.0, -1.0]])).tolist()  # 2.5 and 0.5
        [[0.8333333333333334, 0.16666666666666666]]
    """
    z = logits.double()
    log_p = z.log_softmax(dim=1)
    if float(-log_p.mean()) > threshold:
        return log_p.exp()
    z = z - z.mean(dim=1, keepdim=True)
    values = 1 + z + z.square() / 2
    return values / values.sum(dim=1, keepdim=True)


@dataclass(frozen=True)
class MaNo:
    """Mean of q⁴ over samples and classes, to the power 1/4, times min(1, information / (needed · log K)).

    Args:
        power: Exponent of the norm.
        threshold: See `normalise_logits`.
        needed: Share of log K that the mutual information must reach for the full norm to count.

    Examples:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Target
        >>> snapshot = SimpleNamespace(target=Target(torch.zeros(16, 2), 100 * torch.eye(16), torch.arange(16)))
        >>> MaNo()(snapshot)  # certain and balanced: (1/16)^(1/4)
        0.5
    """

    power: float = 4.0
    threshold: float = 5.0
    needed: float = 0.5

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, in 0..(1/K)^(1/power)."""
        logits = snapshot.target.logits
        norm = float(normalise_logits(logits, self.threshold).pow(self.power).mean().pow(1 / self.power))
        enough = self.needed * log(logits.shape[1])
        share = mutual_information(logits) / enough if enough > 0 else 1.0
        return norm * min(1.0, max(0.0, share))
