"""Transfer score: an even classifier, clustered target features, informative predictions (Yang et al., 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from math import acos, log

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import Tensor, nn
from torch.nn.functional import normalize

from paretoda.evaluation.validators.information import mutual_information
from paretoda.evaluation.validators.validator import draw_samples
from paretoda.types import Snapshot

Array = NDArray[np.float64]


def unevenness(weight: Tensor) -> float:
    """Mean squared difference between the angles of the class vectors and those of a regular simplex.

    Args:
        weight: Weights of the classifier, shape (K, d), K >= 2.
    """
    classes = len(weight)
    rows = normalize(weight.double(), dim=1)
    angles = (rows @ rows.T).clamp(-1, 1).acos()
    off_diagonal = ~torch.eye(classes, dtype=torch.bool, device=weight.device)
    return float((angles[off_diagonal] - acos(-1 / (classes - 1))).square().mean())


def hopkins(points: Array, seed: int = 0) -> float:
    """Σu / (Σu + Σw): about 1/2 for evenly spread points, towards 1 for clusters, 1/2 where it is undefined.

    u are the distances from uniform points in the box around the points to the nearest point, w those from every point
    to the nearest other. The distances are not raised to the power of the dimension: at 8 that gives 1 for everything.

    Args:
        points: Points, shape (m, d).
        seed: Seed of the uniform points.
    """
    if len(points) < 2:
        return 0.5
    uniform = np.random.default_rng(seed).uniform(points.min(axis=0), points.max(axis=0), points.shape)
    tree = cKDTree(points)
    u = float(np.sum(tree.query(uniform)[0]))
    w = float(np.sum(tree.query(points, k=[2])[0]))
    return u / (u + w) if u + w > 0 else 0.5


def project_on_principal_axes(points: Array, dimensions: int) -> Array:
    """The points in their first principal axes, each axis signed so that the largest loading is positive.

    Args:
        points: Points, shape (m, d).
        dimensions: Largest number of axes that are kept.
    """
    centred = points - points.mean(axis=0)
    axes = torch.linalg.svd(torch.from_numpy(centred), full_matrices=False).Vh[:dimensions].numpy()
    largest = np.abs(axes).argmax(axis=1)
    projected: Array = centred @ (axes * np.sign(axes[np.arange(len(axes)), largest])[:, None]).T
    return projected


@dataclass(frozen=True)
class TransferScore:
    """Hopkins statistic of the target's features plus information / log K minus the unevenness of the head.

    The Hopkins statistic is computed in the first principal axes: in hundreds of dimensions every box is empty.

    Args:
        dimensions: Number of principal axes that are kept.
        samples: Largest number of target samples.
        seed: Seed of their choice and of the uniform points.

    Examples:
        >>> from types import SimpleNamespace
        >>> from paretoda.types import Model, Target
        >>> target = Target(torch.randn(20, 4), torch.randn(20, 3), torch.arange(20))
        >>> snapshot = SimpleNamespace(target=target, model=Model(nn.Identity(), nn.Linear(4, 3)))
        >>> TransferScore()(snapshot) < 2
        True
    """

    dimensions: int = 8
    samples: int = 512
    seed: int = 0

    def __call__(self, snapshot: Snapshot) -> float:
        """Return the score, at most 2.

        Raises:
            ValueError: The head has no nn.Linear.
        """
        weight = _weight(snapshot.model.head)
        target = snapshot.target
        chosen = draw_samples(target.index, self.samples, self.seed)
        features = target.features.detach().cpu()[chosen].double().numpy()
        clustered = hopkins(project_on_principal_axes(features, self.dimensions), self.seed)
        informative = abs(mutual_information(target.logits)) / log(target.logits.shape[1])
        return clustered + informative - unevenness(weight)


def _weight(head: nn.Module) -> Tensor:
    """Weights of the head itself, or of its last nn.Linear."""
    own = getattr(head, "weight", None)
    if isinstance(own, Tensor):
        return own.detach()
    linear = [layer for layer in head.modules() if isinstance(layer, nn.Linear)]
    if not linear:
        raise ValueError("transfer-score reads the weights of the head's last nn.Linear, and this head has none")
    return linear[-1].weight.detach()
