"""TPN: classes whose prototypes are the same in source, target and both together (Pan et al., 2019)."""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from paretoda.objectives.parts.differentiation import full_precision
from paretoda.objectives.parts.mmd import SCALES, gaussian, squared_distances
from paretoda.types import Objective, Source, Target

NOBODY = -1
"""The label of a sample that counts for no class."""


def membership(labels: Tensor, classes: int) -> Tensor:
    """1 where the sample is of the class, shape (n, K); a row of zeros for NOBODY.

    Args:
        labels: shape (n,).
        classes: K.
    """
    return (labels.unsqueeze(1) == torch.arange(classes, device=labels.device)).float()


def averages(source: Tensor, target: Tensor) -> list[Tensor]:
    """Weights that make the prototypes of source, target and both together out of all rows, source first.

    Args:
        source: membership, shape (n, K); no class without a member.
        target: membership, shape (m, K); likewise.

    Returns:
        Three matrices of shape (n + m, K) whose columns have sum 1.
    """
    nothing = [torch.zeros_like(target), torch.zeros_like(source)]
    counts = [torch.cat([source, nothing[0]]), torch.cat([nothing[1], target]), torch.cat([source, target])]
    return [count / count.sum(0) for count in counts]


def class_gaps(kernel: Tensor, weights: list[Tensor]) -> Tensor:
    """For each class the squared distances between its three prototypes where the kernel puts them, summed.

    Args:
        kernel: of all rows with each other, shape (n + m, n + m).
        weights: as `averages` returns them.

    Returns:
        Shape (K,).
    """
    gaps = [((one - other) * (kernel @ (one - other))).sum(0) for one, other in combinations(weights, 2)]
    return torch.stack(gaps).sum(0)


@full_precision
def log_memberships(rows: Tensor, prototypes: Tensor, temperature: float) -> Tensor:
    """Log P(c | x), the softmax of minus the squared distances to the prototypes; their unit is their own mean.

    So nothing is won by shrinking all features, which would make all predictions alike.

    Args:
        rows: shape (n, d).
        prototypes: shape (K, d).
        temperature: positive, in mean squared distances.

    Returns:
        Shape (n, K).
    """
    middle = prototypes.detach().mean(0)  # distances do not feel it, and less is lost in the difference below
    rows, prototypes = rows - middle, prototypes - middle
    squares = rows.square().sum(1, keepdim=True) + prototypes.square().sum(1)
    distances = (squares - 2 * rows @ prototypes.T).clamp(min=0)
    mean = distances.mean().clamp(min=torch.finfo(distances.dtype).eps)  # rows may be all alike
    return functional.log_softmax(-distances / (temperature * mean), 1)


def symmetric_divergences(one: Tensor, other: Tensor) -> Tensor:
    """Half of KL(p‖q) plus half of KL(q‖p) of every row.

    Args:
        one: log p, shape (n, K).
        other: log q, shape (n, K).

    Returns:
        Shape (n,), not negative.
    """
    return ((one.exp() - other.exp()) * (one - other)).sum(1) / 2


def scale_free_gaussians(distances: Tensor) -> Tensor:
    """The sum of DAN's Gaussian kernels of distances over their mean, which is no constant here.

    With few samples in a class its gap is never 0. Against a constant bandwidth the gap would fall as all features
    shrink, whose bandwidth shrinks with them, and so on: everything would collapse.

    Args:
        distances: squared, shape (n, n).
    """
    mean = distances.mean().clamp(min=torch.finfo(distances.dtype).eps)  # rows may be all alike
    return torch.stack([gaussian(distances / mean, scale) for scale in SCALES]).sum(0)


@full_precision
def linear_kernel(rows: Tensor) -> Tensor:
    """Inner products of all pairs of rows (n, d), around their mean; shape (n, n)."""
    rows = rows - rows.detach().mean(0)
    return rows @ rows.T


class Tpn(Objective):
    """Distances between the prototypes that source, target and both give a class, and between what they predict.

    Prototypes are of the batch. A target sample counts for the class of its nearest source prototype, where this is
    sure enough; a class that one of the domains has not got is left out.

    Args:
        features: width d of the features; not used.
        classes: number of classes K.
        sourcewise: weight of the source's cross-entropy by its own prototypes, which keeps them apart.
        classwise: weight of the distances between prototypes, a mean over classes.
        samplewise: weight of the divergences between predictions by prototypes, a mean over samples.
        gate: least probability by the source's prototypes with which a target sample counts.
        kernel: where prototypes are compared: "gaussian", with DAN's five kernels, or "linear", as they are.
        temperature: of the predictions by prototypes, in mean squared distances.
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
        """What the batch's source prototypes say of the rows.

        Returns:
            The classes that the source has here, shape (k,), and log P of the rows (n, d), shape (n, k).
        """
        members = membership(source.labels, self.classes).to(source.features)
        present = members.any(0).nonzero().squeeze(1)
        prototypes = (members / members.sum(0).clamp(min=1)).T[present] @ source.features
        return present, log_memberships(rows, prototypes, self.temperature)

    def pseudo_labels(self, source: Source, target: Target) -> Tensor:
        """The class of the nearest source prototype of the batch; NOBODY where it is not sure; shape (m,)."""
        with torch.no_grad():
            present, log_p = self.by_source(source, target.features)
            surest = log_p.max(1)
            return torch.where(surest.values.exp() > self.gate, present[surest.indices], NOBODY)

    def forward(self, source: Source, target: Target) -> Tensor:
        """The three weighted terms; the first alone where source and target have no class in common."""
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
        """Settings."""
        return f"kernel={self.kernel!r}, gate={self.gate}, temperature={self.temperature:g}"

    def _kernel(self, rows: Tensor) -> Tensor:
        return scale_free_gaussians(squared_distances(rows)) if self.kernel == "gaussian" else linear_kernel(rows)
