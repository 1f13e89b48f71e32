"""Maps of logits: enlarged, and as self-information and entropy of every pixel."""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn import functional

from paretoda.domains import Domain
from paretoda.maps import enlarged


def outputs(domain: Domain, levels: int, *, enlarge: bool) -> list[Tensor]:
    """Logits of the prediction and of the first further outputs.

    Args:
        domain: with maps.
        levels: how many outputs there shall be in all.
        enlarge: to the size of the inputs.

    Returns:
        Shape (n, K, h, w) each.
    """
    found = [domain.logits, *domain.further][:levels]
    if len(found) < levels:
        raise ValueError(f"this objective looks at {levels} outputs of the network, and it has {len(found)}")
    if not enlarge:
        return found
    if domain.inputs is None:
        raise ValueError("enlarge needs the domain's inputs, whose size the maps take")
    height, width = domain.inputs.shape[-2:]
    return [enlarged(maps, (height, width)) for maps in found]


def self_information(logits: Tensor) -> Tensor:
    """-p_k log p_k / log K of every class and pixel, in log space: probabilities may underflow.

    Args:
        logits: shape (n, K, h, w).

    Returns:
        Shape (n, K, h, w), not negative.
    """
    log_p = functional.log_softmax(logits, 1)
    return -(log_p.exp() * log_p) / math.log(logits.shape[1])


def pixel_entropies(logits: Tensor) -> Tensor:
    """The entropy of every pixel's prediction over log K: 0 certain, 1 uniform.

    Args:
        logits: shape (n, K, h, w).

    Returns:
        Shape (n, h, w).
    """
    return self_information(logits).sum(1)
