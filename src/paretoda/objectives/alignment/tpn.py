"""TPN: the prototypes of a class are the same in source, target and both together (Pan et al., 2019)."""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.objectives.parts.mmd import SCALES, gaussian, squared_distances
from paretoda.types import Objective, Source, Target

NO_CLASS = -1
"""Label of a sample that belongs to no class."""


def membership(labels: Tensor, classes: int) -> Tensor:
    """1 where the sample belongs to the class, shape (n, K); a row of zeros for NO_CLASS.

    Args:
        labels: Labels, shape (n,).
        classes: Number of classes K.
    """
    return (labels.unsqueeze(1) == torch.arange(classes, device=labels.device)).float()


def averages(source: Tensor, target: Tensor) -> list[Tensor]:
    """Weights that average all rows, source first, to the prototypes of source, target and both together.

    Args:
        source: Membership, shape (n, K); every class has a member.
        target: Membership, shape (m, K); every class has a member.

    Returns:
        Three matrices of shape (n + m, K) whose columns have sum 1.
    """
    nothing = [torch.zeros_like(target), torch.zeros_like(source)]
    counts = [torch.cat([source, nothing[0]]), torch.cat([nothing[1], target]), torch.cat([source, target])]
    return [count / count.sum(0) for count in counts]


def class_gaps(kernel: Tensor, weights: list[Tensor]) -> Tensor:
    """Sum of the squared distances between the three prototypes of each class in the space of the kernel.

    Args:
        kernel: Kernel of all pairs of rows, shape (n + m, n + m).
        weights: Weights as `averages` returns them.

    Returns:
        Shape (K,).
    """
    gaps = [((one - other) * (kernel @ (one - other))).sum(0) for one, other in combinations(weights, 2)]
    return torch.stack(gaps).sum(0)


@full_precision
def log_memberships(rows: Tensor, prototypes: Tensor, temperature: float) -> Tensor:
    """Log P(c | x): softmax of minus the squared distances to the prototypes, in units of their mean.

    The unit makes shrinking all features, which would make all predictions alike, gain nothing.

    Args:
        rows: Features, shape (n, d).
        prototypes: Prototypes, shape (K, d).
        temperature: Temperature in mean squared distances, positive.

    Returns:
        Shape (n, K).

    Examples:
        >>> log_memberships(torch.zeros(1, 2), torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), temperature=1.0).exp()
        tensor([[0.5000, 0.5000]])
    """
    middle = prototypes.detach().mean(0)  # changes no distance and reduces cancellation below
    rows, prototypes = rows - middle, prototypes - middle
    squares = rows.square().sum(1, keepdim=True) + prototypes.square().sum(1)
    distances = (squares - 2 * rows @ prototypes.T).clamp(min=0)
    mean = distances.mean().clamp(min=torch.finfo(distances.dtype).eps)  # all rows may be equal
    return functional.log_softmax(-distances / (temperature * mean), 1)


def symmetric_divergences(one: Tensor, other: Tensor) -> Tensor:
    """Half of KL(p‖q) plus half of KL(q‖p) for every row.

    Args:
        one: log p, shape (n, K).
        other: log q, shape (n, K).

    Returns:
        Shape (n,), non-negative.
    """
    return ((one.exp() - other.exp()) * (one - other)).sum(1) / 2


def scale_free_gaussians(distances: Tensor) -> Tensor:
    """Sum of DAN's Gaussian kernels of the distances over their mean; here the mean is differentiated.

    With few samples in a class its gap is never 0. With a constant bandwidth the gap would fall as all features shrink,
    and the bandwidth would shrink with them: everything would collapse.

    Args:
        distances: Squared distances, shape (n, n).
    """
    mean = distances.mean().clamp(min=torch.finfo(distances.dtype).eps)  # all rows may be equal
    return torch.stack([gaussian(distances / mean, scale) for scale in SCALES]).sum(0)


@full_precision
def linear_kernel(rows: Tensor) -> Tensor:
    """Inner products of all pairs of rows (n, d) around their mean, shape (n, n)."""
    rows = rows - rows.detach().mean(0)
    return rows @ rows.T


class Tpn(Objective):
    """Distances between the class prototypes of source, target and both, and between the predictions that they give.

    Prototypes are those of the batch. A target sample counts for the class of its nearest source prototype where this
    is certain enough; a class that is missing in one of the domains is left out.

    Args:
        features: Width d of the features (not used).
        classes: Number of classes K.
        sourcewise: Weight of the source's cross-entropy by its own prototypes, which keeps them apart.
        classwise: Weight of the distances between prototypes, a mean over classes.
        samplewise: Weight of the divergences between predictions by prototypes, a mean over samples.
        gate: Least probability by the source prototypes with which a target sample counts.
        kernel: Space in which prototypes are compared: "gaussian", with DAN's five kernels, or "linear", as they are.
        temperature: Temperature of the predictions by prototypes, in mean squared distances.

    Raises:
        ValueError: The kernel is unknown, or the temperature is not positive.

    Examples:
        >>> source = Source(torch.randn(8, 4), torch.randn(8, 3), torch.arange(8), labels=torch.arange(8) % 3)
        >>> target = Target(source.features + 0.01, source.logits, torch.arange(8))
        >>> bool(Tpn(features=4, classes=3)(source, target) > 0)
        True
    """

    def __init__(  # noqa: PLR0913 - every option is one of the paper's
        self,
        features: int,
        classes: int,
        *,
        sourcewise: float = 1.0,
        classwise: float = 1.0,
        samplewise: float = 0.1,
        gate: float = 0.6,
        kernel: Literal["gaussian", "linear"] = "gaussian",
        temperature: float = 0.02,
    ) -> None:
        super().__init__()
        if kernel not in ("gaussian", "linear"):
            raise ValueError(f"kernel must be 'gaussian' or 'linear', got {kernel!r}")
        if temperature <= 0:
            raise ValueError(f"temperature must be positive, got {temperature}")
        self.features, self.classes, self.gate, self.kernel = features, classes, gate, kernel
        self.temperature = temperature
        self.sourcewise, self.classwise, self.samplewise = sourcewise, classwise, samplewise

    def by_source(self, source: Source, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Predictions for the rows by the source prototypes of the batch.

        Returns:
            The classes that the source has in this batch, shape (k,), and log P of the rows (n, d), shape (n, k).
        """
        members = membership(source.labels, self.classes).to(source.features)
        present = members.any(0).nonzero().squeeze(1)
        prototypes = (members / members.sum(0).clamp(min=1)).T[present] @ source.features
        return present, log_memberships(rows, prototypes, self.temperature)

    def pseudo_labels(self, source: Source, target: Target) -> Tensor:
        """Class of the nearest source prototype of the batch, or NO_CLASS where it is not certain; shape (m,)."""
        with torch.no_grad():
            present, log_p = self.by_source(source, target.features)
            surest = log_p.max(1)
            return torch.where(surest.values.exp() > self.gate, present[surest.indices], NO_CLASS)

    def forward(self, source: Source, target: Target) -> Tensor:
        """Return the three weighted terms; the first alone where source and target have no class in common."""
        present, log_p = self.by_source(source, source.features)
        own = (source.labels.unsqueeze(1) == present).to(log_p)
        known = -self.sourcewise * (own * log_p).sum(1).mean()
        rows = torch.cat([source.features, target.features])
        members = [membership(labels, self.classes) for labels in (source.labels, self.pseudo_labels(source, target))]
        common = (members[0].any(0) & members[1].any(0)).nonzero().squeeze(1)
        if not len(common):
            return known
        weights = averages(*(member[:, common].to(rows) for member in members))
        gaps = class_gaps(self._kernel(rows), weights).mean()
        predictions = [log_memberships(rows, weight.T @ rows, self.temperature) for weight in weights]
        changes = torch.stack([symmetric_divergences(*pair) for pair in combinations(predictions, 2)]).mean()
        return known + self.classwise * gaps + self.samplewise * changes

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        return f"kernel={self.kernel!r}, gate={self.gate}, temperature={self.temperature:g}"

    def _kernel(self, rows: Tensor) -> Tensor:
        return scale_free_gaussians(squared_distances(rows)) if self.kernel == "gaussian" else linear_kernel(rows)
